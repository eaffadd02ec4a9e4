package fs_test

import (
	"testing"

	"harvest/fs"
)

func TestBus(t *testing.T) {
	var none *fs.Bus
	none.Changed(1) // dropped

	var b fs.Bus
	b.Changed(1)
	e, slow := b.Subscribe(4), b.Subscribe(1)
	b.Changed(2)
	b.Entry(3, "a")
	for _, want := range []fs.Event{{Path: 2}, {Path: 3, Name: "a"}} {
		if got := <-e.C; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if n := e.Lost(); n != 0 {
		t.Errorf("got %d lost, want none", n)
	}
	if n := slow.Lost(); n != 1 {
		t.Errorf("got %d lost of two in a queue of one, want 1", n)
	}
	if n := slow.Lost(); n != 0 {
		t.Errorf("got %d lost since, want none", n)
	}
	if got := (<-slow.C).Path; got != 2 {
		t.Errorf("got %d, want the first, which had room", got)
	}
	e.Close()
	b.Changed(4)
	select {
	case got := <-e.C:
		t.Errorf("got %v after Close", got)
	default:
	}
	if got := (<-slow.C).Path; got != 4 {
		t.Errorf("got %d, want 4", got)
	}
}
