package broker

import (
	"context"
	"strings"

	"harvest/fs"
	"harvest/fs/ndb"
)

// ctl is the Broker's ctl. What it does is logged, with who had it done.
func (s *shown) ctl() fs.Node {
	b := s.b
	one := func(do func(word string) error) func(context.Context, []string) error {
		return func(_ context.Context, arg []string) error { return do(strings.Join(arg, "")) }
	}
	none := func(do func() error) func(context.Context, []string) error {
		return func(context.Context, []string) error { return do() }
	}
	only := func(do func(context.Context) error) func(context.Context, []string) error {
		return func(ctx context.Context, _ []string) error { return do(ctx) }
	}
	return fs.Ctl(b.id("ctl"), s.err,
		b.on("collect [SOURCE]", one(b.ask)),
		b.on("gc", none(b.askGC)),
		b.on("check", only(b.check)),
		b.on("merge", only(b.merge)),
		b.on("reindex", none(b.askReindex)),
		b.on("delete OID...", b.delete),
		b.on("restart [SOURCE]", b.restarting),
		b.on("stop", none(func() error { return b.halt(stopWord) })),
		b.on("start", none(func() error { return b.halt("") })),
		b.on("shutdown", none(func() error { return b.halt(shutWord) })),
		b.on("add FILE...", b.add),
		b.on("clean", only(b.clean)),
		b.on("compact", only(b.compact)),
		b.on("index full|new", b.indexAgain),
		b.on("lifetime OID DURATION", b.lifetime),
		b.on("log open|close|flush|rotate|add|remove [TYPE...]", b.logCtl),
		b.on("remove oid|url|query WHAT...", b.removing),
		b.onText("set ENTRY", b.set),
		b.on("stats", only(b.tellStats)),
		b.on("unset KEY [NAME]", b.unset)).Whose(b.whose)
}

// on is fs.On with a record in the log of what was done.
func (b *Broker) on(usage string, do func(context.Context, []string) error) fs.Command {
	verb, _, _ := strings.Cut(usage, " ")
	return fs.On(usage, func(ctx context.Context, arg []string) error {
		err := do(ctx, arg)
		words := []string{verb}
		for _, a := range arg {
			words = append(words, fs.Quote(a))
		}
		b.did(ctx, strings.Join(words, " "), err)
		return err
	})
}

func (b *Broker) onText(usage string, do func(context.Context, string) error) fs.Command {
	verb, _, _ := strings.Cut(usage, " ")
	return fs.OnText(usage, func(ctx context.Context, text string) error {
		err := do(ctx, text)
		b.did(ctx, verb+" "+text, err)
		return err
	})
}

func (b *Broker) did(ctx context.Context, line string, err error) {
	pairs := []ndb.Pair{ndb.Of("line", line)}
	if err != nil {
		pairs = append(pairs, ndb.Of("err", err))
	}
	b.tell(ctx, logAdmin, pairs...)
}

// restarting is restart [SOURCE].
func (b *Broker) restarting(ctx context.Context, arg []string) error {
	if len(arg) == 0 {
		return b.renewAll(ctx)
	}
	return b.restart(arg[0])
}
