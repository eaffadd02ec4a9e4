package broker

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"harvest/fs"
	"harvest/fs/fstest"
	"harvest/gather/store"
)

// TestScripts runs testdata/script on a tree with Brokers and a Gatherer's
// store of 300 objects, all with the word harvest, every tenth about pears.
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
		all, err := OpenAll(filepath.Join(work, "broker"), testLog(tb), Options{Open: w.open})
		must(tb, err)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { all.Run(ctx) })
		return fs.Static(fs.RootPath, map[string]fs.Node{"broker": all.Files()}), func() {
			cancel()
			wg.Wait()
			must(tb, all.Close())
		}
	})
}
