package ninep

import (
	"context"
	"slices"
	"strings"
	"syscall"

	"github.com/knusbaum/go9p/proto"
)

// oneRead is the most that ReadMost asks for before it knows that there is anything.
const oneRead = 64 << 10

// ReadMost reads the file at a path below the directory, or its first bytes. Walk, open
// and read go out together, so that what is small takes one round: four messages, with
// the clunk that nobody waits for. It is for files of which an open handle reads one
// version, not for those that wait.
func (d *dir) ReadMost(ctx context.Context, path string, most int) ([]byte, error) {
	names := slices.Clone(d.path)
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	unit := int(d.c.msize) - ioHeader
	buf := make([]byte, min(most, unit, oneRead))
	var open, first *call
	fid, err := d.c.at(ctx, names, true, func(fid uint32) []*call {
		open, first = openCall(fid, 0), readCall(fid, 0, buf)
		return []*call{open, first}
	})
	if err != nil {
		return nil, err
	}
	defer d.c.forget(fid)
	if open.reply.(*proto.ROpen).Qid.Qtype&byte(proto.DMDIR>>24) != 0 {
		return nil, syscall.EISDIR
	}
	b, n := buf[:first.n], first.n
	// A server that has little memory gives less than it could, but of ours never
	// less than it tries first: then that was all.
	for n > 0 && len(b) < most && !(d.c.ours && n < firstRead && n < len(buf)) {
		buf = make([]byte, min(most-len(b), unit))
		k := readCall(fid, uint64(len(b)), buf)
		if err := d.c.do(ctx, k); err != nil {
			return nil, err
		}
		b, n = append(b, buf[:k.n]...), k.n
	}
	return b, nil
}
