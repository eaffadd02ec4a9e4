package ninep

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"harvest/fs"
)

// A transcript is a conversation, a message a line. T-lines are sent, R-lines
// have to come, in that order; a field of * is not compared. After the type
// and the tag stand the fields in their order on the wire (see shapes): a
// number in any base, ~ for one with all bits set, text quoted as fs.Quote
// does, a qid as type:version:path in hex. A stat is written, and may be given
// in part, as name= mode= length= mtime= uid= gid= muid= qid= kind=.
//
// Other lines: "hex" sends bytes, "wait N" waits until N reads of a slow file
// have begun, "none" says that no other has, "go" lets one of them end, "closed" says that the server has
// hung up, and "user NAME", anywhere, who asks.

func num(t string, bytes int) (uint64, error) {
	if t == "~" {
		return 1<<(8*bytes) - 1 | map[bool]uint64{true: ^uint64(0)}[bytes == 8], nil
	}
	return strconv.ParseUint(t, 0, 8*bytes)
}

var typeNames = func() map[string]byte {
	m := make(map[string]byte)
	for i, n := range []string{"version", "auth", "attach", "error", "flush", "walk", "open", "create", "read", "write", "clunk", "remove", "stat", "wstat"} {
		m["T"+n], m["R"+n] = byte(100+2*i), byte(101+2*i)
	}
	return m
}()

// compose makes a frame of a T-line.
func compose(line string) ([]byte, error) {
	f, err := fs.Fields(line)
	if err != nil {
		return nil, err
	}
	kind, ok := typeNames[f[0]]
	if !ok || len(f) < 2 {
		return nil, fmt.Errorf("no message: %s", line)
	}
	tag, err := num(f[1], 2)
	if err != nil {
		return nil, err
	}
	f = f[2:]
	b := appendHeader(nil, 0, kind, uint16(tag))
	for _, c := range shapes[kind-100] {
		if c != '-' && c != 'n' && c != 'S' && len(f) == 0 {
			return nil, fmt.Errorf("too few fields: %s", line)
		}
		switch c {
		case '-':
		case 's':
			b = append(le.AppendUint16(b, uint16(len(f[0]))), f[0]...)
			f = f[1:]
		case 'd':
			b = append(le.AppendUint32(b, uint32(len(f[0]))), f[0]...)
			f = f[1:]
		case 'n':
			b = le.AppendUint16(b, uint16(len(f)))
			for _, s := range f {
				b = append(le.AppendUint16(b, uint16(len(s))), s...)
			}
			f = nil
		case 'S':
			st := untouched()
			for _, a := range f {
				k, v, _ := strings.Cut(a, "=")
				n, err := num(v, 4)
				switch k {
				case "name":
					st.Name, err = v, nil
				case "uid":
					st.Uid, err = v, nil
				case "gid":
					st.Gid, err = v, nil
				case "mode":
					st.Mode = uint32(n)
				case "mtime":
					st.Mtime = uint32(n)
				case "length":
					st.Length = n
				default:
					err = errors.New("unknown " + k)
				}
				if err != nil {
					return nil, err
				}
			}
			b = le.AppendUint16(b, uint16(statLen(&st)))
			b = appendStat(b, &st)
			f = nil
		default:
			n, err := num(f[0], int(c-'0'))
			if err != nil {
				return nil, err
			}
			for range int(c - '0') {
				b = append(b, byte(n))
				n >>= 8
			}
			f = f[1:]
		}
	}
	if len(f) > 0 {
		return nil, fmt.Errorf("too many fields: %s", line)
	}
	le.PutUint32(b, uint32(len(b)))
	return b, nil
}

func qidText(b []byte) string {
	return fmt.Sprintf("%x:%x:%x", b[0], le.Uint32(b[1:]), le.Uint64(b[5:]))
}

// render is an R-line of a frame, which has been checked.
func render(f []byte) string {
	var out []string
	for name, kind := range typeNames {
		if kind == f[4] {
			out = append(out, name)
		}
	}
	word := func(s string) { out = append(out, fs.Quote(s)) }
	word(fmt.Sprint(le.Uint16(f[5:])))
	b := f[7:]
	for _, c := range shapes[f[4]-100] {
		switch c {
		case '-':
		case 's':
			n := 2 + int(le.Uint16(b))
			word(string(b[2:n]))
			b = b[n:]
		case 'd':
			word(string(b[4 : 4+le.Uint32(b)]))
		case 'q':
			word(qidText(b))
			b = b[13:]
		case 'Q':
			for b = b[2:]; len(b) > 0; b = b[13:] {
				word(qidText(b))
			}
		case 'S':
			st, _, _ := parseStat(b[2:])
			word("name=" + st.Name)
			word(fmt.Sprintf("mode=0%o", st.Mode))
			word(fmt.Sprintf("length=%d", st.Length))
			word("uid=" + st.Uid)
			word(fmt.Sprintf("qid=%x:%x:%x", st.Qid.Qtype, st.Qid.Vers, st.Qid.Uid))
			word(fmt.Sprintf("kind=%d", st.Dev))
		default:
			n := uint64(0)
			for i := int(c-'0') - 1; i >= 0; i-- {
				n = n<<8 | uint64(b[i])
			}
			word(fmt.Sprint(n))
			b = b[c-'0':]
		}
	}
	return strings.Join(out, " ")
}

// readFrame reads a message and holds it to the frame check.
func readFrame(r io.Reader) ([]byte, error) {
	h := make([]byte, 4)
	if _, err := io.ReadFull(r, h); err != nil {
		return nil, err
	}
	n := le.Uint32(h)
	if n < 7 || n > MaxMsize {
		return nil, fmt.Errorf("size %d", n)
	}
	f := append(h, make([]byte, n-4)...)
	if _, err := io.ReadFull(r, f[4:]); err != nil {
		return nil, err
	}
	return f, check(f)
}

// alike compares an R-line with what was wanted.
func alike(got, want string) bool {
	g, _ := fs.Fields(got)
	w, err := fs.Fields(want)
	if err != nil || len(g) != len(w) {
		return false
	}
	for i := range g {
		if w[i] != "*" && !strings.HasSuffix(w[i], "=*") && g[i] != w[i] {
			return false
		}
	}
	return true
}

// theTree is the one that transcripts speak of. Paths count from 1001 in the
// order made here.
func theTree() *shelf {
	root := newShelf()
	root.bus.slow = make(chan struct{})
	root.bus.refuse = fs.Class(errors.New("unknown control message: badger"), errInvalid)
	a := root.dir("a")                // 3e9
	b := a.dir("b")                   // 3ea
	b.file("c", "text of c\n")        // 3eb
	root.file("f", "hello\n")         // 3ec
	ev := root.file("events", "ev\n") // 3ed
	ev.kind = fs.Live
	root.file("ctl", "usage\n").kind = fs.Control // 3ee
	lg := root.file("log", "one\n")               // 3ef
	lg.kind = fs.Growing
	shut := root.dir("shut") // 3f0
	shut.mode = 0o700
	shut.file("in", "secret") // 3f1
	ro := root.dir("ro")      // 3f2
	ro.mode = 0o555
	ro.file("fixed", "as it is\n").mode = 0o444 // 3f3
	return root
}

var errInvalid = fromText("invalid argument")

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			root := theTree()
			play(t, root, file, string(text))
			if b := root.bus; b.opens != b.closes || b.closedTwice {
				t.Errorf("%d handles opened, %d closed, one of them twice: %v", b.opens, b.closes, b.closedTwice)
			}
		})
	}
}

func play(t *testing.T, root *shelf, file, text string) {
	user := owner()
	user.Groups = []string{"staff"}
	lines := strings.Split(text, "\n")
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "user "); ok {
			user = &fs.User{Name: name, ReadOnly: name == "none"}
		}
	}
	v := NewServer(discard(), Limits{})
	v.owner, v.group = "glenda", "sys"
	a, nc := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- v.ServeConn(t.Context(), a, root, user) }()
	defer func() {
		nc.Close()
		<-ended
	}()
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	// Replies are read as they come: a pipe holds nothing.
	type frame struct {
		f   []byte
		err error
	}
	replies := make(chan frame, 100)
	go func() {
		r := bufio.NewReader(nc)
		for {
			f, err := readFrame(r)
			replies <- frame{f, err}
			if err != nil {
				return
			}
		}
	}()
	for i, line := range lines {
		at := fmt.Sprintf("%s:%d", file, i+1)
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || word[0] == '#' || word == "user":
		case word[0] == 'T':
			f, err := compose(line)
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			if _, err := nc.Write(f); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
		case word[0] == 'R':
			r := <-replies
			if r.err != nil {
				t.Fatalf("%s: %v, want %s", at, r.err, line)
			}
			if got := render(r.f); !alike(got, line) {
				t.Fatalf("%s:\ngot  %s\nwant %s", at, got, line)
			}
		case word == "hex":
			b, err := hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			nc.Write(b) // the server may hang up in its middle
		case word == "wait":
			n, _ := strconv.Atoi(rest)
			for range n {
				<-root.bus.entered
			}
		case word == "none":
			if n := len(root.bus.entered); n > 0 {
				t.Fatalf("%s: %d reads have begun", at, n)
			}
		case word == "go":
			root.bus.slow <- struct{}{}
		case word == "closed":
			if r := <-replies; r.err == nil {
				t.Fatalf("%s: got %s, want the end", at, render(r.f))
			}
		default:
			t.Fatalf("%s: what is %q?", at, line)
		}
	}
	select {
	case r := <-replies:
		if r.err == nil {
			t.Errorf("%s: at the end came %s", file, render(r.f))
		}
	default:
	}
}

// TestCut ends the connection after every byte of a conversation. The server
// is done with it each time, and no handle stays open.
func TestCut(t *testing.T) {
	var all []byte
	for _, line := range []string{
		"Tversion ~ 8192 9P2000", "Tattach 1 0 ~ glenda ''", "Twalk 2 0 1 a b c", "Topen 3 1 2",
		"Tread 4 1 0 100", "Twrite 5 1 0 'some text'", "Twalk 6 0 2", "Tcreate 7 2 new 0644 1",
		"Twstat 8 1 name=d mtime=5", "Tstat 9 1", "Tflush 10 9", "Tremove 11 2", "Tclunk 12 1",
	} {
		f, err := compose(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f...)
	}
	for n := range len(all) {
		root := theTree()
		v := NewServer(discard(), Limits{})
		a, nc := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- v.ServeConn(t.Context(), a, root, owner()) }()
		read := make(chan struct{})
		go func() { io.Copy(io.Discard, nc); close(read) }()
		nc.Write(all[:n])
		nc.Close()
		err := <-ended
		<-read
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", n, err)
		}
		if b := root.bus; b.opens != b.closes || b.closedTwice {
			t.Errorf("cut at %d: %d handles opened, %d closed, one of them twice: %v", n, b.opens, b.closes, b.closedTwice)
		}
		if got := v.stats.conns.Load() + v.stats.fids.Load(); got != 0 {
			t.Errorf("cut at %d: %d connections and fids left", n, got)
		}
	}
}
