package index_test

import (
	"testing"

	"harvest/index"
	"harvest/index/enginetest"
)

// TestKill kills a process that applies documents and reads them, and looks
// whether the index is then what it said it was.
func TestKill(t *testing.T) {
	enginetest.Kill(t, func(dir string, src index.Source) (*index.Unsearched, error) {
		return index.OpenUnsearched(dir, index.Settings{Memory: 1 << 14, Workers: 1, Source: src})
	}, func(t *testing.T, e *index.Unsearched, h *enginetest.History) {
		e.Compare(t, func(mark string) map[index.ID]index.Doc { return h.Docs(enginetest.Step(mark)) })
	})
}
