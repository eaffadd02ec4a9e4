package block_test

import (
	"testing"

	"harvest/index"
	"harvest/index/block"
	"harvest/index/enginetest"
)

// opener opens a small index.
func opener(grain block.Grain) func(dir string, src index.Source) (index.Engine, error) {
	return func(dir string, src index.Source) (index.Engine, error) {
		return block.Open(dir, index.Settings{Memory: 1 << 16, Workers: 1, Source: src}, grain)
	}
}

func TestKill(t *testing.T) { enginetest.Kill(t, opener(block.Tiny), enginetest.Answers) }

func fault(grain block.Grain) enginetest.Fault[index.Engine] {
	return enginetest.Fault[index.Engine]{Open: opener(grain), Read: enginetest.Answers}
}

func TestFullDisk(t *testing.T) { fault(block.Small).FullDisk(t) }

func TestFailingWrite(t *testing.T) { fault(block.Tiny).FailingWrite(t) }

func TestDamage(t *testing.T) {
	for _, grain := range []block.Grain{block.Tiny, block.Small, block.Medium} {
		t.Run(grain.String(), func(t *testing.T) { fault(grain).Damage(t, enginetest.Ask) })
	}
}
