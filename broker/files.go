package broker

import (
	"log/slog"

	"harvest/fs"
)

// The tree of a Broker:
//
//	config translated template template.translated ctl status stats events log err
//	objects/ url/ soif soif.zst since/ digest    as gather/store has them
//	attributes consistency
//	words            what others route queries by: package route
//	as/METHOD/OID    what a method says of an object
//	query/
//		clone
//		N/      ctl err status hits summary soif why plan suggest results/
//	q/
//		QUERY/  status hits summary soif why plan suggest 001.soif …
//	similar/
//		OID/    the same but suggest
//	duplicates      copies, and of what; walked to as dups too
//	near/           see files_dups.go
//	views/      see files_views.go
//	by/         see files_by.go
//
// In q, a result is the object itself: 001.soif has the qid of
// objects/3f/3fa9….soif, and the folder belongs to one answer; after the index
// has moved, q/QUERY is another folder, so that what a client has seen of one
// never changes under it. query/N/results stays the same folder and shows the
// answer there is; see resultFile for what that means.

// Options are what a Broker is handed. The zero value collects nothing.
type Options struct {
	Open Opener
	Bus  *fs.Bus // hears what changes in the tree; may be nil

	// Registry says that services register themselves by writing to register:
	// this is the registry of servers.
	Registry bool

	lanes *lanes // that several Brokers share; nil: it has its own
}

// keepEvents is how much of events is kept.
const keepEvents = 1 << 20

// shown is what a Broker keeps for its side of the tree.
type shown struct {
	b       *Broker
	bus     *fs.Bus
	err     *fs.Err
	events  *fs.Log
	tail    *fs.Log // of the log, for those who wait
	objects fs.Dir
	dir     fs.Dir
}

func newShown(b *Broker, bus *fs.Bus) *shown {
	return &shown{b: b, bus: bus, err: fs.NewErr(b.id("err")), events: fs.NewLog(keepEvents), tail: fs.NewLog(keepTail)}
}

// logger is lg with what it says also in the file log.
func (s *shown) logger(lg *slog.Logger) *slog.Logger {
	return slog.New(slog.NewMultiHandler(lg.Handler(), slog.NewTextHandler(s.b.journal, nil)))
}

// tell adds a record to events.
func (s *shown) tell(record string) { s.events.Add(record) }

// complain puts what went wrong into err; nil takes it out.
func (s *shown) complain(what, line string, err error) { s.err.Set(what, line, err) }

func (b *Broker) id(parts ...string) uint64 {
	kind := "broker"
	if b.registers {
		kind = "registry"
	}
	return fs.ID(append([]string{kind, b.name}, parts...)...)
}

// Files serves b as a directory; docs/broker.4.md is its manual.
func (b *Broker) Files() fs.Dir { return b.shown.dir }

// build makes the directory, once: a config being edited has state in it.
func (s *shown) build() {
	b := s.b
	nodes := b.store.Files(b.id, s.bus, b.remove)
	s.objects = nodes["objects"].(fs.Dir)
	nodes["config"] = fs.Config(b.id("config"), s.err, b.configText, b.setConfig).Lines(checkLine).Whose(b.whose)
	nodes["template"] = fs.Config(b.id("template"), s.err, b.template.source, b.setTemplate).Named("template").Removable()
	nodes["template.translated"] = fs.Text(b.id("template.translated"), b.template.translated)
	nodes["translated"] = fs.Text(b.id("translated"), b.translated)
	nodes["ctl"] = s.ctl()
	nodes["err"] = s.err
	nodes["status"] = fs.Text(b.id("status"), b.status)
	nodes["stats"] = fs.Text(b.id("stats"), b.stats)
	nodes["consistency"] = fs.Stream(b.id("consistency"), 0, b.writeConsistency)
	nodes["attributes"] = pageFile(b.id("attributes"), unchanging, func() produce { return b.writeAttributes })
	nodes["origins"] = fs.Text(b.id("origins"), b.origins)
	nodes["words"] = pageFile(b.id("words"), unchanging, func() produce { return b.writeDigest })
	nodes["query"] = queryDir{b}
	nodes["q"] = namedDir{b}
	nodes["similar"] = similarDir{b}
	nodes["duplicates"] = b.duplicatesFile()
	nodes["dups"] = fs.Hidden(nodes["duplicates"])
	nodes["near"] = nearDir{b}
	nodes["as"] = s.asFiles()
	nodes["views"] = viewsDir{b: b}
	nodes["by"] = byDir{b: b}
	nodes["shortcuts"] = b.shortcutsDir()
	if b.registers {
		b.registryFiles(nodes)
	}
	s.events.Nodes(nodes, "events", b.id)
	s.logNodes(nodes)
	s.dir = fs.StaticAnd(b.id("dir"), nodes, s.oldLogs)
}
