package cache

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"harvest/fs"
	"harvest/fs/fstest"
)

// TestScripts runs testdata/script on a tree with caches.
func TestScripts(t *testing.T) {
	fstest.Scripts(t, filepath.Join("testdata", "script"), func(tb testing.TB, work string) (fs.Dir, func()) {
		bus := new(fs.Bus)
		all, err := OpenAll(filepath.Join(work, "cache"), slog.New(slog.DiscardHandler), Options{Bus: bus})
		if err != nil {
			tb.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { all.Run(ctx) })
		return fs.Static(fs.RootPath, map[string]fs.Node{"cache": all.Files()}), func() {
			cancel()
			wg.Wait()
			if err := all.Close(); err != nil {
				tb.Error(err)
			}
		}
	})
}
