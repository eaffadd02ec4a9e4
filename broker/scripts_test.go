package broker

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"harvest/fs"
	"harvest/fs/fstest"
	"harvest/gather/gatherd"
	"harvest/gather/store"
)

// TestScripts runs testdata/script on a tree with Brokers and a Gatherer's
// store of 300 objects, all with the word harvest, every tenth about pears, and
// one of dupObjects, copies. The first
// store is exported by the old protocol too, at the port in gatherd-port.
func TestScripts(t *testing.T) {
	fstest.Scripts(t, filepath.Join("testdata", "script"), func(tb testing.TB, work string) (fs.Dir, func()) {
		w := newWorld(tb)
		g := w.gatherer("gather/web")
		var changes []store.Change
		for i := range 300 {
			fruit := []string{"pears", "apples"}[min(i%10, 1)]
			o := object(fmt.Sprintf("http://site/%03d", i), fmt.Sprintf("Growing %s, part %d", fruit, i),
				fmt.Sprintf("The harvest of %s.\nSpin_lock and Mutex %d.", fruit, i))
			o.Add("Pages", fmt.Append(nil, 1000-i))
			changes = append(changes, update(o))
		}
		apply(tb, g, changes...)
		copies := w.gatherer("gather/copies")
		for _, o := range dupObjects() {
			apply(tb, copies, update(o))
		}
		var all *fs.Services[*Broker]
		open := func(ctx context.Context, path string) (iofs.FS, io.Closer, error) {
			name, ok := strings.CutPrefix(path, "broker/")
			if !ok {
				return w.open(ctx, path)
			}
			n, err := fs.Walk(ctx, all.Files(), name)
			if err != nil {
				return nil, nil, err
			}
			return fs.IO(ctx, n.(fs.Dir)), io.NopCloser(nil), nil
		}
		all, err := OpenAll(filepath.Join(work, "broker"), testLog(tb), Options{Open: open})
		must(tb, err)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { all.Run(ctx) })
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(tb, err)
		wg.Go(func() { gatherd.New(g, gatherd.Options{Name: "web", Host: "here"}).Serve(ctx, l) })
		_, port, err := net.SplitHostPort(l.Addr().String())
		must(tb, err)
		return fs.Static(fs.RootPath, map[string]fs.Node{
				"broker":       all.Files(),
				"gatherd-port": fs.Text(fs.ID("gatherd-port"), func() string { return port }),
			}), func() {
				cancel()
				wg.Wait()
				must(tb, all.Close())
			}
	})
}
