@FILE { file:///in/hello.go
Type{2}:	Go
Title{8}:	hello.go
File-Size{3}:	333
Last-Modification-Time{10}:	1000000000
MD5{32}:	1680992fc2226a60a84660e9deb2e079
Description{57}:	Package hello greets whoever calls, in several languages.
Keywords{30}:	hello Greeter Greet New answer
Comments{142}:	Copyright 2026 The authors. All rights reserved.
Package hello greets whoever calls, in several languages.
A Greeter says hello.
Greet greets.
Full-Text{332}:	// Copyright 2026 The authors. All rights reserved.

// Package hello greets whoever calls, in several languages.
package hello

/* A Greeter says hello. */
type Greeter struct{ name string }

// Greet greets.
func (g *Greeter) Greet(to string) string { return "hello, " + to }

func New() *Greeter { return nil }

const answer = 42
}
recognize	Go	name *.go	
summarize	5 attributes	Go	
