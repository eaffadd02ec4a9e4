package broker

import (
	"log/slog"

	"harvest/fs"
)

// OpenAll opens the Brokers in dir, a directory each: fs.Services.
func OpenAll(dir string, lg *slog.Logger, opt Options) (*fs.Services[*Broker], error) {
	opt.lanes = newLanes()
	return fs.OpenServices(dir, fs.ServicesOptions[*Broker]{
		Name: "broker", Noun: "broker", Check: checkName, Log: lg, Bus: opt.Bus,
		Open: func(path, name string) (*Broker, error) { return Open(path, name, lg, opt) },
	})
}
