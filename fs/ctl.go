package fs

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"unicode"
)

// Command is one thing a ctl file does.
type Command struct {
	usage string
	verb  string
	min   int // fields after the verb
	max   int // -1: any number
	args  func(ctx context.Context, arg []string) error
	text  func(ctx context.Context, text string) error
}

// On makes a command from its usage, which is the verb, then a word for each
// argument: [WORD] may be left out, WORD... may be repeated. Arguments are
// quoted the Plan 9 way; run gets them without the verb.
func On(usage string, run func(ctx context.Context, arg []string) error) Command {
	words := strings.Fields(usage)
	c := Command{usage: usage, verb: words[0], args: run}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "[") {
			c.min++
		}
		if strings.Contains(w, "...") {
			c.max = -1
		} else if c.max >= 0 {
			c.max++
		}
	}
	return c
}

// OnText is On for a command that takes the rest of its line as it stands,
// quotes and all, with the white space around it cut off.
func OnText(usage string, run func(ctx context.Context, text string) error) Command {
	return Command{usage: usage, verb: strings.Fields(usage)[0], text: run}
}

// A CtlFile takes commands, one a line; read, it lists them.
//
// A write may hold several lines; a line never spans writes, and a last line
// without a newline counts. The write returns when its effect can be read.
// The first line refused fails the write and ends it; lines before it stand.
type CtlFile struct {
	path  uint64
	err   *Err
	cmds  []Command
	read  func() string
	owner string
	who   func() (owner, group string)
}

// Ctl makes a CtlFile; what it refuses is kept in err, which may be nil.
func Ctl(path uint64, err *Err, cmds ...Command) *CtlFile {
	return &CtlFile{path: path, err: err, cmds: cmds}
}

// Reads makes the file read as f says instead.
func (c *CtlFile) Reads(f func() string) *CtlFile { c.read = f; return c }

// OwnedBy gives the file to a user.
func (c *CtlFile) OwnedBy(user string) *CtlFile { c.owner = user; return c }

// Whose has f say whose the file is each time it is asked. A named owner or group
// may write, as the tree's own users may if no group is named.
func (c *CtlFile) Whose(f func() (owner, group string)) *CtlFile { c.who = f; return c }

func (c *CtlFile) text() string {
	if c.read != nil {
		return c.read()
	}
	var b strings.Builder
	for _, cmd := range c.cmds {
		b.WriteString(cmd.usage + "\n")
	}
	return b.String()
}

// Stat says that the owner may write.
func (c *CtlFile) Stat() Stat {
	st := Stat{Path: c.path, Kind: Control, Mode: 0o644, Size: int64(len(c.text())), Owner: c.owner}
	return whose(st, c.who)
}

// Open never truncates.
func (c *CtlFile) Open(ctx context.Context, m Mode) (Handle, error) {
	return &ctlHandle{Snapshot([]byte(c.text())), c}, nil
}

// Set takes any new size or time: truncation means nothing here.
func (c *CtlFile) Set(ctx context.Context, ch Change) error {
	if ch.Mode != nil && ch.Mode.Perm() != c.Stat().Mode {
		return iofs.ErrPermission
	}
	return nil
}

// Do runs text as if it were written to the file.
func (c *CtlFile) Do(ctx context.Context, text string) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		err := Class(c.do(ctx, line), iofs.ErrInvalid)
		c.err.Set("ctl", line, err)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *CtlFile) do(ctx context.Context, line string) error {
	verb, rest := line, ""
	if i := strings.IndexFunc(line, unicode.IsSpace); i >= 0 {
		verb, rest = line[:i], strings.TrimSpace(line[i:])
	}
	for _, cmd := range c.cmds {
		if cmd.verb != verb {
			continue
		}
		if cmd.text != nil {
			return cmd.text(ctx, rest)
		}
		arg, err := Fields(rest)
		if err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		if len(arg) < cmd.min || cmd.max >= 0 && len(arg) > cmd.max {
			return errors.New("usage: " + cmd.usage)
		}
		return cmd.args(ctx, arg)
	}
	return errors.New("unknown control message: " + verb)
}

// whose gives a file the owner and the group that who names; those may write.
func whose(st Stat, who func() (owner, group string)) Stat {
	if who == nil {
		return st
	}
	owner, group := who()
	if owner == "" && group == "" {
		return st
	}
	if owner != "" {
		st.Owner = owner
	}
	st.Group, st.Mode = group, st.Mode|st.Mode&0o200>>3
	return st
}

type ctlHandle struct {
	Handle
	c *CtlFile
}

func (h *ctlHandle) WriteAt(ctx context.Context, p []byte, _ int64) (int, error) {
	if err := h.c.Do(ctx, string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
