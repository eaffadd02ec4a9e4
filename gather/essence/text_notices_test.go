package essence

import "testing"

// TestPastNotices takes the line that a text is called by from behind notices, and
// from the head of a licence, which is nothing but them.
func TestPastNotices(t *testing.T) {
	const grant = "Permission is hereby granted to whoever reads this text.\n\n"
	for _, tt := range []struct{ name, text, want string }{
		{"program", "Copyright (c) 1999 Ann\n\n" + grant + "The Frobnicator\n\nIt frobs all that it meets.\n", "The Frobnicator"},
		{"licence", "  GNU GENERAL PUBLIC LICENSE\n  Version 3\n\nCopyright (C) 2007\n\n" + grant + "Preamble of the whole\n\nWords.\n", "GNU GENERAL PUBLIC LICENSE"},
		{"quoted", "The \"Artistic License\"\n\nPreamble\n\nThe intent of this.\n", `The "Artistic License"`},
		{"only notices", "Copyright 1999 Ann.\n\n" + grant + grant + grant + grant + grant + grant + grant + grant + "After all that.\n", "Copyright 1999 Ann."},
		{"one paragraph", "Copyright (c) 1999 Ann", "Copyright (c) 1999 Ann"},
		{"field", "License: GPL-2+\n\nThe Frobnicator frobs things.\n", "The Frobnicator frobs things."},
	} {
		if got, _ := firstLine(pastNotices([]byte(tt.text))); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
