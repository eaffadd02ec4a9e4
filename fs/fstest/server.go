package fstest

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// freePort sets a variable to a port on loopback that nobody listens on, for a
// real server that the script starts.
func freePort(ctx context.Context, _ *session, ts *testscript.TestScript, arg []string) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	ts.Setenv(arg[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	return "", l.Close()
}

// listening waits until someone listens on a port.
func listening(ctx context.Context, _ *session, _ *testscript.TestScript, arg []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+arg[0])
		if err == nil {
			return "", c.Close()
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return "", err
		}
	}
}
