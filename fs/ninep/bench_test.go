package ninep

import (
	"bufio"
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"iter"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/knusbaum/go9p/proto"

	"harvest/fs"
)

// numbers is a directory of that many files, 0000000 and on.
type numbers int

func (n numbers) Stat() fs.Stat { return fs.Stat{Path: fs.ID("numbers"), Vers: 1, Mode: 0o555} }

func (n numbers) Lookup(_ context.Context, name string) (fs.Node, error) {
	i, err := strconv.Atoi(name)
	if err != nil || i >= int(n) || len(name) != 7 {
		return nil, iofs.ErrNotExist
	}
	return number(i), nil
}

func (n numbers) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	return func(yield func(fs.Entry, error) bool) {
		i := 0
		if after != "" {
			k, _ := strconv.Atoi(after)
			i = k + 1
		}
		for ; i < int(n); i++ {
			if !yield(fs.Entry{Name: fmt.Sprintf("%07d", i), Node: number(i)}, nil) {
				return
			}
		}
	}
}

type number int

func (n number) Stat() fs.Stat {
	return fs.Stat{Path: uint64(n) + 10, Vers: 1, Mode: 0o444, Size: 8}
}

func (n number) Open(context.Context, fs.Mode) (fs.Handle, error) {
	return fs.Snapshot([]byte(fmt.Sprintf("%07d\n", n))), nil
}

// real is a file or directory of the system as it was when it was looked up.
type real struct {
	p  string
	st fs.Stat
}

type realDir struct{ real }
type realFile struct{ real }

func (r real) Stat() fs.Stat { return r.st }

func realNode(p string) (fs.Node, error) {
	fi, err := os.Lstat(p)
	if err != nil {
		return nil, err
	}
	r := real{p, fs.Stat{
		Path: fs.ID(p), Vers: uint32(fi.ModTime().UnixNano()) | 1, Mode: fi.Mode().Perm(), Size: fi.Size(), Mtime: fi.ModTime(),
	}}
	if fi.IsDir() {
		return realDir{r}, nil
	}
	return realFile{r}, nil
}

func (d realDir) Lookup(_ context.Context, name string) (fs.Node, error) {
	return realNode(d.p + "/" + name)
}

func (d realDir) List(_ context.Context, after string) iter.Seq2[fs.Entry, error] {
	return func(yield func(fs.Entry, error) bool) {
		all, err := os.ReadDir(d.p)
		if err != nil {
			yield(fs.Entry{}, err)
			return
		}
		for _, e := range all {
			if e.Name() <= after {
				continue
			}
			n, err := realNode(d.p + "/" + e.Name())
			if err == nil && !yield(fs.Entry{Name: e.Name(), Node: n}, nil) {
				return
			}
		}
	}
}

func (f realFile) Open(context.Context, fs.Mode) (fs.Handle, error) {
	file, err := os.Open(f.p)
	return realHandle{file}, err
}

type realHandle struct{ f *os.File }

func (h realHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return h.f.ReadAt(p, off)
}
func (h realHandle) WriteAt(context.Context, []byte, int64) (int, error) {
	return 0, iofs.ErrPermission
}
func (h realHandle) Flush(context.Context) error { return nil }
func (h realHandle) Close() error                { return h.f.Close() }

// cost reports the processor time that a server takes for an operation: the
// clock tells little on a machine that does other things too.
func (p peer) cost(b *testing.B, per int) func() {
	ticks := func() int64 {
		t, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
		if err != nil {
			b.Fatal(err)
		}
		f := strings.Fields(string(t[strings.LastIndexByte(string(t), ')'):]))
		u, _ := strconv.ParseInt(f[12], 10, 64)
		s, _ := strconv.ParseInt(f[13], 10, 64)
		return u + s
	}
	from := ticks()
	return func() {
		b.StopTimer()
		b.ReportMetric(float64(ticks()-from)*1e7/float64(b.N*per), "server-ns/op") // 100 ticks a second
	}
}

// A peer is a server to be measured with raw messages, in its dialect: ours
// in a process of its own, or diod, which speaks 9P2000.L.
type peer struct {
	name string
	addr string // host:port
	dotl bool
	disk []string // the names of the shared directory
	pid  int
}

// peers serve the same directory.
func peers(b *testing.B, dir string) []peer {
	b.Setenv(childDir, dir)
	at, pid := child(b, "tcp!127.0.0.1!0")
	_, addr, err := parseAddr(at)
	if err != nil {
		b.Fatal(err)
	}
	ps := []peer{{"harvest", addr, false, []string{"disk"}, pid}}
	path, err := exec.LookPath("diod")
	if err != nil {
		path = "/usr/sbin/diod"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	cmd := exec.Command(path, "-f", "-n", "-N", "-l", addr, "-e", dir, "-L", "/dev/null", "-c", "/dev/null")
	if err := cmd.Start(); err != nil {
		b.Logf("no diod to compare with: %v", err)
		return ps
	}
	b.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 200 {
		if nc, err := net.Dial("tcp", addr); err == nil {
			nc.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return append(ps, peer{"diod", addr, true, nil, cmd.Process.Pid})
}

// raw is a connection of a benchmark.
type raw struct {
	b    *testing.B
	p    peer
	nc   net.Conn
	br   *bufio.Reader
	dir  string
	size uint32 // msize
}

func frame(kind byte, tag uint16, fields ...any) []byte {
	f := appendHeader(nil, 0, kind, tag)
	for _, v := range fields {
		switch v := v.(type) {
		case uint32:
			f = le.AppendUint32(f, v)
		case uint64:
			f = le.AppendUint64(f, v)
		case byte:
			f = append(f, v)
		case string:
			f = append(le.AppendUint16(f, uint16(len(v))), v...)
		case []string:
			f = le.AppendUint16(f, uint16(len(v)))
			for _, s := range v {
				f = append(le.AppendUint16(f, uint16(len(s))), s...)
			}
		}
	}
	le.PutUint32(f, uint32(len(f)))
	return f
}

func (p peer) connect(b *testing.B, dir string, msize uint32) *raw {
	nc, err := net.Dial("tcp", p.addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { nc.Close() })
	r := &raw{b, p, nc, bufio.NewReaderSize(nc, 64<<10), dir, 0}
	if p.dotl {
		v := r.rpc(frame(proto.Tversion, noTag, msize, "9P2000.L"))
		r.size = le.Uint32(v[7:])
		r.rpc(frame(proto.Tattach, 1, uint32(0), uint32(noFid), "root", dir, uint32(0)))
	} else {
		v := r.rpc(frame(proto.Tversion, noTag, msize, "9P2000"))
		r.size = le.Uint32(v[7:])
		r.rpc(frame(proto.Tattach, 1, uint32(0), uint32(noFid), "root", ""))
	}
	return r
}

// reply reads a message, no further than its first bytes if it is data.
func (r *raw) reply() []byte {
	h := make([]byte, 11)
	if _, err := io.ReadFull(r.br, h[:7]); err != nil {
		r.b.Fatal(err)
	}
	n := int(le.Uint32(h)) - 7
	if h[4] == proto.Rerror || h[4] == 7 {
		e := make([]byte, n)
		io.ReadFull(r.br, e)
		r.b.Fatalf("%s: error %q", r.p.name, e)
	}
	if h[4] == proto.Rread || h[4] == 41 {
		io.ReadFull(r.br, h[7:])
		r.br.Discard(n - 4)
		return h
	}
	f := make([]byte, 7+n)
	copy(f, h)
	if _, err := io.ReadFull(r.br, f[7:]); err != nil {
		r.b.Fatal(err)
	}
	return f
}

func (r *raw) rpc(f []byte) []byte {
	if _, err := r.nc.Write(f); err != nil {
		r.b.Fatal(err)
	}
	return r.reply()
}

func (r *raw) path(names ...string) []string {
	return append(append([]string{}, r.p.disk...), names...)
}

func (r *raw) stat(tag uint16, fid uint32) []byte {
	if r.p.dotl {
		return frame(24, tag, fid, uint64(0x7ff)) // Tgetattr
	}
	return frame(proto.Tstat, tag, fid)
}

func (r *raw) open(fid uint32, names ...string) {
	r.rpc(frame(proto.Twalk, 1, uint32(0), fid, r.path(names...)))
	if r.p.dotl {
		r.rpc(frame(12, 1, fid, uint32(0))) // Tlopen
	} else {
		r.rpc(frame(proto.Topen, 1, fid, byte(0)))
	}
}

// pump makes n rounds of requests, depth rounds at a time. A round's requests
// go out one after the reply to the other: servers differ in what order they
// do those that are there together. The tag tells the round.
func (r *raw) pump(n, depth, steps int, msg func(tag uint16, round, step int) []byte) {
	type slot struct{ round, step int }
	slots := make([]slot, min(depth, n))
	w := bufio.NewWriterSize(r.nc, 32<<10)
	next := 0
	for i := range slots {
		slots[i] = slot{next, 0}
		w.Write(msg(uint16(i), next, 0))
		next++
	}
	for range n * steps {
		if r.br.Buffered() < 7 {
			w.Flush()
		}
		f := r.reply()
		i := le.Uint16(f[5:])
		s := &slots[i]
		if s.step++; s.step == steps {
			if next == n {
				continue
			}
			*s = slot{next, 0}
			next++
		}
		w.Write(msg(i, s.round, s.step))
	}
}

// BenchmarkStat: 64 requests in flight for the attributes of one real file.
func BenchmarkStat(b *testing.B) {
	dir := b.TempDir()
	os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644)
	for _, p := range peers(b, dir) {
		b.Run(p.name, func(b *testing.B) {
			r := p.connect(b, dir, 65536)
			r.rpc(frame(proto.Twalk, 1, uint32(0), uint32(1), r.path("file")))
			b.ResetTimer()
			defer p.cost(b, 1)()
			r.pump(b.N, 64, 1, func(tag uint16, _, _ int) []byte { return r.stat(tag, 1) })
		})
	}
}

// BenchmarkWalk: walk to a real file, its attributes, clunk; one after the
// other, and 64 requests in flight.
func BenchmarkWalk(b *testing.B) {
	dir := b.TempDir()
	os.MkdirAll(filepath.Join(dir, "a/b"), 0o755)
	os.WriteFile(filepath.Join(dir, "a/b/file"), []byte("text"), 0o644)
	for _, p := range peers(b, dir) {
		for _, depth := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/depth=%d", p.name, depth), func(b *testing.B) {
				r := p.connect(b, dir, 65536)
				defer p.cost(b, 1)()
				b.ResetTimer()
				r.pump(b.N, depth, 3, func(tag uint16, _, step int) []byte {
					fid := uint32(tag) + 1
					switch step {
					case 0:
						return frame(proto.Twalk, tag, uint32(0), fid, r.path("a", "b", "file"))
					case 1:
						return r.stat(tag, fid)
					}
					return frame(proto.Tclunk, tag, fid)
				})
			})
		}
	}
}

// BenchmarkRead: a real (sparse) file of 1 GB from one end to the other, by
// raw messages of up to 1 MiB with 8 in flight, and by our client.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		b.Fatal(err)
	}
	f.Truncate(zerosSize)
	io.Copy(io.Discard, f) // into the kernel's cache
	f.Close()
	ps := peers(b, dir)
	for _, p := range ps {
		for _, depth := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/depth=%d", p.name, depth), func(b *testing.B) {
				r := p.connect(b, dir, MaxMsize)
				r.open(1, "file")
				unit := int(r.size) - ioHeader
				b.SetBytes(zerosSize)
				b.ReportMetric(float64(r.size), "msize")
				defer p.cost(b, 1)()
				b.ResetTimer()
				for range b.N {
					r.pump((zerosSize+unit-1)/unit, depth, 1, func(tag uint16, i, _ int) []byte {
						return frame(proto.Tread, tag, uint32(1), uint64(i*unit), uint32(unit))
					})
				}
			})
		}
	}
	for _, name := range []string{"disk/file", "big"} {
		for _, size := range []int{32 << 10, 1 << 20, 8 << 20} {
			b.Run(fmt.Sprintf("client/%s/read=%dK", filepath.Base(name), size>>10), func(b *testing.B) {
				c, err := Dial(b.Context(), "tcp!"+strings.Replace(ps[0].addr, ":", "!", 1), DialOptions{})
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				n, err := fs.Walk(b.Context(), c.Root(), name)
				if err != nil {
					b.Fatal(err)
				}
				h, err := n.(fs.File).Open(b.Context(), fs.Read)
				if err != nil {
					b.Fatal(err)
				}
				defer h.Close()
				p := make([]byte, size)
				b.SetBytes(zerosSize)
				b.ResetTimer()
				for range b.N {
					for off := int64(0); off < zerosSize; {
						k, err := h.ReadAt(b.Context(), p, off)
						if err != nil {
							b.Fatal(err)
						}
						off += int64(k)
					}
				}
			})
		}
	}
}

// BenchmarkReaddir: 100,000 entries in messages of 64 KiB, of a real directory
// by diod and of one made up by us, and a million by our client.
func BenchmarkReaddir(b *testing.B) {
	dir := b.TempDir()
	for i := range 100000 {
		f, err := os.Create(fmt.Sprintf("%s/%07d", dir, i))
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
	ps := peers(b, dir)
	for _, p := range ps {
		b.Run(p.name, func(b *testing.B) {
			r := p.connect(b, dir, 65536)
			fid := uint32(1)
			defer p.cost(b, 1)()
			for range b.N {
				if p.dotl {
					r.open(fid)
				} else {
					r.p.disk = []string{"hundred"}
					r.open(fid)
				}
				off := uint64(0)
				for {
					kind := byte(proto.Tread)
					if p.dotl {
						kind = 40 // Treaddir
					}
					f := frame(kind, 1, fid, off, r.size-ioHeader)
					if _, err := r.nc.Write(f); err != nil {
						b.Fatal(err)
					}
					n, last := r.entries()
					if n == 0 {
						break
					}
					off += uint64(n)
					if p.dotl {
						off = last
					}
				}
				r.rpc(frame(proto.Tclunk, 1, fid))
			}
		})
	}
	b.Run("client/million", func(b *testing.B) {
		c, err := Dial(b.Context(), "tcp!"+strings.Replace(ps[0].addr, ":", "!", 1), DialOptions{})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		d, err := c.Root().Lookup(b.Context(), "million")
		if err != nil {
			b.Fatal(err)
		}
		for range b.N {
			n := 0
			for _, err := range d.(fs.Dir).List(b.Context(), "") {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != 1e6 {
				b.Fatalf("%d entries", n)
			}
		}
		b.ReportMetric(float64(peak(b, ps[0].pid)>>20), "server-MB")
	})
}

// entries reads a reply with entries of a directory: its bytes and, of a
// 9P2000.L one, the cookie of the last entry.
func (r *raw) entries() (n int, last uint64) {
	h := make([]byte, 11)
	if _, err := io.ReadFull(r.br, h); err != nil {
		r.b.Fatal(err)
	}
	if h[4] != proto.Rread && h[4] != 41 {
		r.b.Fatalf("%s: reply type %d", r.p.name, h[4])
	}
	n = int(le.Uint32(h[7:]))
	p := make([]byte, n)
	if _, err := io.ReadFull(r.br, p); err != nil {
		r.b.Fatal(err)
	}
	for q := p; r.p.dotl && len(q) > 0; {
		last = le.Uint64(q[13:])
		q = q[24+int(le.Uint16(q[22:])):]
	}
	return n, last
}

// TestMillion lists a directory of a million entries, in little memory on
// both sides.
func TestMillion(t *testing.T) {
	if raceOn || testing.Short() {
		t.Skip("skipped under -race and -short: it measures memory")
	}
	addr, pid := child(t, "tcp!127.0.0.1!0")
	c := dial(t, addr, DialOptions{})
	d, err := c.Root().Lookup(t.Context(), "million")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	n, prev := 0, ""
	for e, err := range d.(fs.Dir).List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Name <= prev {
			t.Fatalf("%s after %s", e.Name, prev)
		}
		prev = e.Name
		n++
	}
	mem := peak(t, pid)
	t.Logf("%d entries in %v, the server's memory peaked at %d MB", n, time.Since(begun), mem>>20)
	if n != 1e6 {
		t.Errorf("entries: got %d, want 1000000", n)
	}
	if mem > 100<<20 {
		t.Errorf("memory: %d MB, want at most 100", mem>>20)
	}
}
