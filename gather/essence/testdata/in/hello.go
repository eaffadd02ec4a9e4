// Copyright 2026 The authors. All rights reserved.

// Package hello greets whoever calls, in several languages.
package hello

/* A Greeter says hello. */
type Greeter struct{ name string }

// Greet greets.
func (g *Greeter) Greet(to string) string { return "hello, " + to }

func New() *Greeter { return nil }

const answer = 42
