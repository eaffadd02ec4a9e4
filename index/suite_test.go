package index_test

import (
	"testing"

	"harvest/index"
	"harvest/index/enginetest"
)

func TestEngine(t *testing.T) {
	enginetest.Run(t, func(dir string, src index.Source) (index.Engine, error) {
		return index.Open(dir, index.Settings{Source: src})
	}, enginetest.Options{})
}
