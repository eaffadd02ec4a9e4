package gathertest

import (
	"io"
	"log"
)

// quiet is for servers whose visitors hang up on them.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
