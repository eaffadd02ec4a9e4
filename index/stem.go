package index

import (
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
)

// stemming gives the function that stems in a language, nil for one that is
// not known. Irish, Tamil and Turkish are not: their stemmers hang on letters
// and marks that folding takes away.
func stemming(language string) func(*snowballstem.Env) bool {
	switch language {
	case "arabic":
		return arabic.Stem
	case "danish":
		return danish.Stem
	case "dutch":
		return dutch.Stem
	case "english":
		return english.Stem
	case "finnish":
		return finnish.Stem
	case "french":
		return french.Stem
	case "german":
		return german.Stem
	case "hungarian":
		return hungarian.Stem
	case "italian":
		return italian.Stem
	case "norwegian":
		return norwegian.Stem
	case "portuguese":
		return portuguese.Stem
	case "romanian":
		return romanian.Stem
	case "russian":
		return russian.Stem
	case "spanish":
		return spanish.Stem
	case "swedish":
		return swedish.Stem
	}
	return nil
}

// Languages are those that Stemmer knows, in order.
func Languages() []string {
	return []string{
		"arabic", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian", "norwegian",
		"portuguese", "romanian", "russian", "spanish", "swedish",
	}
}

// Stemmer gives Options.Stem for a language: Snowball's stemmer of that name,
// over words as Words gives them. Since those have lost their accents, rules
// about letters with accents find nothing to do; what remains is cut as
// before. The function may be called concurrently. An unknown language is
// iofs.ErrInvalid.
func Stemmer(language string) (func(word string) string, error) {
	stem := stemming(language)
	if stem == nil {
		return nil, fmt.Errorf("stem %s: not one of %s: %w", language, strings.Join(Languages(), ", "), iofs.ErrInvalid)
	}
	envs := sync.Pool{New: func() any { return snowballstem.NewEnv("") }}
	return func(word string) string {
		env := envs.Get().(*snowballstem.Env)
		defer envs.Put(env)
		env.SetCurrent(word)
		env.LimitBackward = 0
		stem(env)
		return env.Current()
	}, nil
}

// StopWords are English words that say little of what a text is about, as
// Words gives them, in order: what Options.Stop may begin with.
func StopWords() []string {
	words := strings.Fields(`
		a an and any are as at be been but by can did do does for from had has have he her his how i if in into is it its
		may me my no nor not of on or our she so some such than that the their them then there these they this those to
		was we were what when where which who why will with would you your`)
	slices.Sort(words)
	return words
}
