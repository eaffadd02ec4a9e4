package block_test

import (
	"testing"

	"harvest/index"
	"harvest/index/block"
	"harvest/index/enginetest"
)

func TestEngine(t *testing.T) {
	for name, tt := range map[string]struct {
		grain     block.Grain
		noNumbers bool
	}{
		"tiny":                 {block.Tiny, false},
		"tiny without numbers": {block.Tiny, true},
		"small":                {block.Small, false},
		"medium":               {block.Medium, false},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(dir string, src index.Source) (index.Engine, error) {
				return block.Open(dir, index.Settings{Source: src, NoNumbers: tt.noNumbers}, tt.grain)
			}, enginetest.Options{Unranked: true, NoNumbers: tt.noNumbers})
		})
	}
}

// TestCoarse has as many documents in doubt as can be.
func TestCoarse(t *testing.T) {
	keys := func(attr string) bool { return attr != "body" }
	for name, set := range map[string]index.Settings{
		"keys": {}, "some keys, little memory": {Keys: keys, Memory: 1 << 12, Workers: 2},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(dir string, src index.Source) (index.Engine, error) {
				set.Source = src
				return block.OpenCoarse(dir, set)
			}, enginetest.Options{Unranked: true})
		})
	}
}
