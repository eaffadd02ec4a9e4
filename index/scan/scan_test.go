package scan_test

import (
	"testing"

	"harvest/index"
	"harvest/index/enginetest"
	"harvest/index/scan"
)

func TestEngine(t *testing.T) {
	for name, without := range map[string]bool{"": false, "without numbers": true} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(dir string, src index.Source) (index.Engine, error) {
				return scan.Open(dir, index.Settings{Source: src, NoNumbers: without})
			}, enginetest.Options{Unranked: true, NoNumbers: without})
		})
	}
}

func open(dir string, src index.Source) (index.Engine, error) {
	return scan.Open(dir, index.Settings{Source: src})
}

func TestKill(t *testing.T) { enginetest.Kill(t, open, enginetest.Answers) }
