package fstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"slices"
	"strings"
	"testing"

	"harvest/fs"
)

// A recorder keeps the complaints of a suite instead of failing.
type recorder struct {
	testing.TB
	got []string
}

func (r *recorder) Errorf(format string, arg ...any) {
	r.got = append(r.got, fmt.Sprintf(format, arg...))
}
func (r *recorder) Error(arg ...any)                 { r.got = append(r.got, fmt.Sprint(arg...)) }
func (r *recorder) Fatalf(format string, arg ...any) { r.Errorf(format, arg...); panic(r) }
func (r *recorder) Fatal(arg ...any)                 { r.Error(arg...); panic(r) }
func (r *recorder) Logf(string, ...any)              {}

// run catches what Fatal threw.
func (r *recorder) run(f func()) {
	defer func() {
		if e := recover(); e != nil && e != r {
			panic(e)
		}
	}()
	f()
}

// fake is a Dir and a File whose every answer can be spoilt.
type fake struct {
	st    fs.Stat
	names []string
	child func(name string) fs.Node
	look  func(name string) (fs.Node, error)
	list  func(ctx context.Context, after string) iter.Seq2[fs.Entry, error]
}

func (d *fake) Stat() fs.Stat { return d.st }

func (d *fake) Lookup(_ context.Context, name string) (fs.Node, error) {
	if d.look != nil {
		return d.look(name)
	}
	if !slices.Contains(d.names, name) {
		return nil, fmt.Errorf("%s: %w", name, iofs.ErrNotExist)
	}
	return d.child(name), nil
}

func (d *fake) List(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
	if d.list != nil {
		return d.list(ctx, after)
	}
	return func(yield func(fs.Entry, error) bool) {
		for _, name := range d.names {
			if name > after && !yield(fs.Entry{Name: name, Node: d.child(name)}, nil) {
				return
			}
		}
	}
}

type fakeFile struct {
	st   fs.Stat
	open func(m fs.Mode) (fs.Handle, error)
}

func (f *fakeFile) Stat() fs.Stat                                        { return f.st }
func (f *fakeFile) Open(_ context.Context, m fs.Mode) (fs.Handle, error) { return f.open(m) }

type fakeHandle struct {
	fs.Handle
	read  func(ctx context.Context, p []byte, off int64) (int, error)
	flush error
}

func (h *fakeHandle) Flush(context.Context) error { return h.flush }

func (h *fakeHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if h.read != nil {
		return h.read(ctx, p, off)
	}
	return h.Handle.ReadAt(ctx, p, off)
}

const content = "some text, long enough to be read in several steps\n"

// TestBroken breaks each promise once and wants the suite to say so.
func TestBroken(t *testing.T) {
	mk := func(name string) *fakeFile {
		f := &fakeFile{st: fs.Stat{Path: id("f", name), Mode: 0o444, Size: int64(len(content))}}
		f.open = func(m fs.Mode) (fs.Handle, error) {
			if m&fs.Write != 0 {
				return nil, iofs.ErrPermission
			}
			return &fakeHandle{Handle: fs.Snapshot([]byte(content))}, nil
		}
		return f
	}
	// spoil gives a tree in which one file reads as f says.
	spoil := func(f func(h *fakeHandle, ctx context.Context, p []byte, off int64) (int, error)) func(*fake) {
		return func(d *fake) {
			d.child = func(name string) fs.Node {
				file := mk(name)
				open := file.open
				file.open = func(m fs.Mode) (fs.Handle, error) {
					h, err := open(m)
					if err != nil {
						return nil, err
					}
					inner := h.(*fakeHandle).Handle
					fh := &fakeHandle{Handle: inner}
					plain := &fakeHandle{Handle: inner}
					fh.read = func(ctx context.Context, p []byte, off int64) (int, error) { return f(plain, ctx, p, off) }
					return fh, nil
				}
				return file
			}
		}
	}
	with := func(change func(f *fakeFile, name string)) func(*fake) {
		return func(d *fake) {
			d.child = func(name string) fs.Node {
				f := mk(name)
				change(f, name)
				return f
			}
		}
	}
	opens := 0
	tests := []struct {
		name string
		do   func(d *fake)
		want string // "" is no complaint
	}{
		{"nothing", func(*fake) {}, ""},
		{"order", func(d *fake) { d.names = []string{"b", "a"} }, "want bytewise order"},
		{"twice", func(d *fake) { d.names = []string{"a", "a"} }, "want bytewise order"},
		{"bad name", func(d *fake) { d.names = []string{"a/b"} }, "want one a name can be"},
		{"long name", func(d *fake) { d.names = []string{strings.Repeat("x", 256)} }, "want one a name can be"},
		{"no resume", func(d *fake) {
			d.list = func(context.Context, string) iter.Seq2[fs.Entry, error] {
				return (&fake{names: d.names, child: d.child}).List(t.Context(), "")
			}
		}, "list after"},
		{"resume includes", func(d *fake) {
			d.list = func(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
				return func(yield func(fs.Entry, error) bool) {
					for _, name := range d.names {
						if name >= after && !yield(fs.Entry{Name: name, Node: d.child(name)}, nil) {
							return
						}
					}
				}
			}
		}, "list after"},
		{"resume at absent", func(d *fake) {
			d.list = func(ctx context.Context, after string) iter.Seq2[fs.Entry, error] {
				if after != "" && !slices.Contains(d.names, after) {
					return func(func(fs.Entry, error) bool) {}
				}
				return (&fake{names: d.names, child: d.child}).List(ctx, after)
			}
		}, "list after"},
		{"list fails", func(d *fake) {
			d.list = func(context.Context, string) iter.Seq2[fs.Entry, error] {
				return func(yield func(fs.Entry, error) bool) { yield(fs.Entry{}, io.ErrUnexpectedEOF) }
			}
		}, "unexpected EOF"},
		{"listed, not found", func(d *fake) {
			d.look = func(name string) (fs.Node, error) { return nil, iofs.ErrNotExist }
		}, "which is listed"},
		{"found as another", func(d *fake) {
			d.look = func(name string) (fs.Node, error) {
				if !slices.Contains(d.names, name) {
					return nil, iofs.ErrNotExist
				}
				return mk(name + "x"), nil
			}
		}, "as listed"},
		{"finds all", func(d *fake) {
			d.look = func(name string) (fs.Node, error) { return d.child(name), nil }
		}, "want ErrNotExist"},
		{"wrong class", func(d *fake) {
			look := d.Lookup
			d.look = func(name string) (fs.Node, error) {
				d.look = nil
				defer func() { d.look = func(string) (fs.Node, error) { return nil, errors.New("no") } }()
				return look(t.Context(), name)
			}
		}, "want ErrNotExist"},
		{"directory size", func(d *fake) { d.st.Size = 4096 }, "want 0 for a directory"},
		{"reserved path", func(d *fake) { d.st.Path = 0 }, "reserved"},
		{"second root", with(func(f *fakeFile, _ string) { f.st.Path = fs.RootPath }), "reserved"},
		{"mode", with(func(f *fakeFile, _ string) { f.st.Mode |= iofs.ModeDir }), "want permission bits"},
		{"one path", with(func(f *fakeFile, _ string) { f.st.Path = 7 }), "have the same path"},
		{"size", with(func(f *fakeFile, _ string) { f.st.Size++ }), "the length of its content"},
		{"size of a made file", with(func(f *fakeFile, _ string) { f.st.Size++; f.st.Kind = fs.Made }), "the length of its content"},
		{"size 0 of a made file", with(func(f *fakeFile, _ string) { f.st.Size = 0; f.st.Kind = fs.Made }), ""},
		{"size 0 of a growing file", with(func(f *fakeFile, _ string) { f.st.Size = 0; f.st.Kind = fs.Growing }), "the length of its content"},
		{"kind", with(func(f *fakeFile, _ string) { f.st.Kind = 9 }), "got kind 9"},
		{"writable", with(func(f *fakeFile, _ string) {
			f.open = func(fs.Mode) (fs.Handle, error) {
				return &fakeHandle{Handle: fs.Snapshot([]byte(content))}, nil
			}
		}), "opened for writing"},
		{"refused by another class", with(func(f *fakeFile, _ string) {
			open := f.open
			f.open = func(m fs.Mode) (fs.Handle, error) {
				if m&fs.Write != 0 {
					return nil, iofs.ErrInvalid
				}
				return open(m)
			}
		}), "opened for writing"},
		{"cannot open", with(func(f *fakeFile, _ string) {
			f.open = func(fs.Mode) (fs.Handle, error) { return nil, iofs.ErrPermission }
		}), "open: permission denied"},
		{"flush", with(func(f *fakeFile, _ string) {
			open := f.open
			f.open = func(m fs.Mode) (fs.Handle, error) {
				h, err := open(m)
				if err == nil {
					h.(*fakeHandle).flush = iofs.ErrInvalid
				}
				return h, err
			}
		}), "flush: invalid argument"},
		{"other content each time", with(func(f *fakeFile, _ string) {
			f.open = func(m fs.Mode) (fs.Handle, error) {
				if m&fs.Write != 0 {
					return nil, iofs.ErrPermission
				}
				opens++
				b := []byte(content)
				b[3] = byte('0' + opens%10)
				return fs.Snapshot(b), nil
			}
		}), "two opens of one version"},
		{"offsets ignored", spoil(func(h *fakeHandle, ctx context.Context, p []byte, off int64) (int, error) {
			if off >= int64(len(content)) || off < 0 {
				return h.ReadAt(ctx, p, off)
			}
			return h.ReadAt(ctx, p, off-off%7+(off+off%2)%7)
		}), "want"},
		{"never ends", spoil(func(h *fakeHandle, ctx context.Context, p []byte, off int64) (int, error) {
			n, err := h.ReadAt(ctx, p, off)
			if err == io.EOF {
				err = nil
			}
			return n, err
		}), "multiple Read calls return no data"},
		{"end at an offset past it", spoil(func(h *fakeHandle, ctx context.Context, p []byte, off int64) (int, error) {
			if off > int64(len(content)) {
				return 0, iofs.ErrInvalid
			}
			return h.ReadAt(ctx, p, off)
		}), "want EOF"},
		{"before the start", spoil(func(h *fakeHandle, ctx context.Context, p []byte, off int64) (int, error) {
			return h.ReadAt(ctx, p, max(off, 0))
		}), "read at -1"},
		{"deaf", spoil(func(h *fakeHandle, ctx context.Context, p []byte, off int64) (int, error) {
			if ctx.Err() != nil {
				return 0, io.ErrUnexpectedEOF
			}
			return h.ReadAt(ctx, p, off)
		}), "cancelled context"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &fake{st: fs.Stat{Path: fs.RootPath, Mode: 0o555}, names: []string{"a", "b", "c"}}
			d.child = func(name string) fs.Node { return mk(name) }
			tt.do(d)
			r := &recorder{TB: t}
			s := newSuite(r, d, Options{})
			r.run(s.tree)
			got := strings.Join(r.got, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got the complaints %q, want %q", got, tt.want)
			}
		})
	}
}

// spoilt is a notes directory that breaks a promise about change.
type spoilt struct {
	notes
	create func(c fs.Creator, ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error)
	remove func(r fs.Remover, ctx context.Context, name string) error
	rename func(r fs.Renamer, ctx context.Context, old, new string, replace bool) error
	mkdir  func(m fs.Maker, ctx context.Context, name string, perm iofs.FileMode) (fs.Dir, error)
	stat   func(st fs.Stat) fs.Stat
}

func (d spoilt) Stat() fs.Stat {
	if d.stat != nil {
		return d.stat(d.notes.Stat())
	}
	return d.notes.Stat()
}

func (d spoilt) Create(ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
	if d.create != nil {
		return d.create(d.notes, ctx, name, perm, m)
	}
	return d.notes.Create(ctx, name, perm, m)
}

func (d spoilt) Remove(ctx context.Context, name string) error {
	if d.remove != nil {
		return d.remove(d.notes, ctx, name)
	}
	return d.notes.Remove(ctx, name)
}

func (d spoilt) Rename(ctx context.Context, old, new string, replace bool) error {
	if d.rename != nil {
		return d.rename(d.notes, ctx, old, new, replace)
	}
	return d.notes.Rename(ctx, old, new, replace)
}

func (d spoilt) Mkdir(ctx context.Context, name string, perm iofs.FileMode) (fs.Dir, error) {
	if d.mkdir != nil {
		return d.mkdir(d.notes, ctx, name, perm)
	}
	return d.notes.Mkdir(ctx, name, perm)
}

// TestBrokenChange does so for what changes a directory.
func TestBrokenChange(t *testing.T) {
	owner := context.Background()
	tests := []struct {
		name string
		do   func(d *spoilt)
		want string
	}{
		{"nothing", func(*spoilt) {}, ""},
		{"version", func(d *spoilt) { d.stat = func(st fs.Stat) fs.Stat { st.Vers = 3; return st } }, "version stays"},
		{"create again", func(d *spoilt) {
			d.create = func(c fs.Creator, ctx context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
				f, h, err := c.Create(ctx, name, perm, m)
				if errors.Is(err, iofs.ErrExist) {
					n, lerr := d.notes.Lookup(ctx, name)
					if lerr != nil {
						return nil, nil, lerr
					}
					f = n.(fs.File)
					h, err = f.Open(ctx, m)
				}
				return f, h, err
			}
		}, "create what is there"},
		{"create by anyone", func(d *spoilt) {
			d.create = func(c fs.Creator, _ context.Context, name string, perm iofs.FileMode, m fs.Mode) (fs.File, fs.Handle, error) {
				return c.Create(owner, name, perm, m)
			}
		}, "create by a user"},
		{"remove by anyone", func(d *spoilt) {
			d.remove = func(r fs.Remover, _ context.Context, name string) error { return r.Remove(owner, name) }
		}, "remove by a user"},
		{"remove is nothing", func(d *spoilt) {
			d.remove = func(r fs.Remover, ctx context.Context, name string) error {
				if fs.UserOf(ctx).ReadOnly {
					return iofs.ErrPermission
				}
				return nil
			}
		}, "remove what is gone"},
		{"rename replaces", func(d *spoilt) {
			d.rename = func(r fs.Renamer, ctx context.Context, old, new string, _ bool) error {
				return r.Rename(ctx, old, new, true)
			}
		}, "rename onto what is there"},
		{"rename never replaces", func(d *spoilt) {
			d.rename = func(r fs.Renamer, ctx context.Context, old, new string, _ bool) error {
				return r.Rename(ctx, old, new, false)
			}
		}, "rename with replace"},
		{"rename by anyone", func(d *spoilt) {
			d.rename = func(r fs.Renamer, ctx context.Context, old, new string, replace bool) error {
				return r.Rename(owner, old, new, replace)
			}
		}, "rename by a user"},
		{"mkdir again", func(d *spoilt) {
			d.mkdir = func(m fs.Maker, ctx context.Context, name string, perm iofs.FileMode) (fs.Dir, error) {
				sub, err := m.Mkdir(ctx, name, perm)
				if errors.Is(err, iofs.ErrExist) {
					return d.sub(name), nil
				}
				return sub, err
			}
		}, "mkdir of what is there"},
		{"mkdir by anyone", func(d *spoilt) {
			d.mkdir = func(m fs.Maker, _ context.Context, name string, perm iofs.FileMode) (fs.Dir, error) {
				return m.Mkdir(owner, name, perm)
			}
		}, "mkdir by a user"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sm := &sample{work: t.TempDir(), dirs: make(map[string]bool), log: fs.NewLog(100)}
			d := &spoilt{notes: notes{sm, sm.config()}}
			tt.do(d)
			r := &recorder{TB: t}
			r.run(func() { newSuite(r, d, Options{}).create("") })
			r.run(func() { newSuite(r, d, Options{}).mkdir("") })
			got := strings.Join(r.got, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got the complaints %q, want %q", got, tt.want)
			}
		})
	}
}

// TestBrokenLive wants a reader that cannot be called off to be found out.
func TestBrokenLive(t *testing.T) {
	f := &fakeFile{st: fs.Stat{Path: id("live"), Kind: fs.Live, Mode: 0o444}}
	f.open = func(fs.Mode) (fs.Handle, error) {
		h := &fakeHandle{Handle: fs.Snapshot(nil)}
		h.read = func(ctx context.Context, _ []byte, _ int64) (int, error) {
			<-ctx.Done()
			return 0, io.EOF
		}
		return h, nil
	}
	r := &recorder{TB: t}
	r.run(func() { newSuite(r, nil, Options{}).live("live", f) })
	if got := strings.Join(r.got, "\n"); !strings.Contains(got, "want context canceled") && !strings.Contains(got, "want context.Canceled") {
		t.Errorf("got the complaints %q, want one about the cancelled read", got)
	}
}
