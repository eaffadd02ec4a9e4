package pattern

import (
	"regexp/syntax"
	"slices"
)

// Bounds of the words that one regular expression is looked for by.
const (
	maxAlternatives = 32
	maxClauses      = 8
	minWord         = 3 // bytes; shorter ones are in every text
)

// A need is what is known of the texts that a regular expression matches: that
// they are one of exact (when not nil), and that they have one of each of some in
// them. All are as words gives them.
type need struct {
	exact []string
	some  [][]string
}

// required gives sets of words; in every text that the expression matches is one
// of each. The first is that which is rarest in others. None is told of some.
func required(re *syntax.Regexp) [][]string {
	sets := needOf(re).sets()
	slices.SortStableFunc(sets, func(a, b []string) int { return worth(b) - worth(a) })
	return sets[:min(len(sets), maxClauses)]
}

// beginnings gives words of which every match begins with one, or nil.
func beginnings(re *syntax.Regexp) []string {
	if set := beginningOf(re); len(set) <= maxAlternatives && worth(set) >= minWord {
		return set
	}
	return nil
}

func beginningOf(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return beginningOf(re.Sub[0])
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			set := beginningOf(sub)
			if set == nil || len(all) > maxAlternatives {
				return nil
			}
			all = append(all, set...)
		}
		return distinct(all)
	case syntax.OpConcat:
		run := []string{""}
		for _, sub := range re.Sub {
			exact := needOf(sub).exact
			joined := join(run, exact)
			if exact == nil || joined == nil {
				if more := join(run, beginningOf(sub)); more != nil {
					return more
				}
				return run
			}
			run = joined
		}
		return run
	}
	return needOf(re).exact
}

// sets are those that tell something.
func (n need) sets() [][]string {
	sets := slices.Clone(n.some)
	if worth(n.exact) >= minWord {
		sets = append(sets, n.exact)
	}
	return sets
}

// best is the one that tells most, or nil.
func (n need) best() (most []string) {
	for _, set := range n.sets() {
		if worth(set) > worth(most) {
			most = set
		}
	}
	return most
}

// worth is the length of the shortest; a blank tells nothing.
func worth(set []string) int {
	if set == nil {
		return 0
	}
	n := 1 << 30
	for _, s := range set {
		k := len(s)
		for _, c := range []byte(s) {
			if c == ' ' {
				k--
			}
		}
		n = min(n, k)
	}
	return n
}

func needOf(re *syntax.Regexp) need {
	switch re.Op {
	case syntax.OpLiteral:
		return need{exact: []string{string(words(string(re.Rune)))}}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return need{exact: []string{""}}
	case syntax.OpCharClass:
		return classNeed(re.Rune)
	case syntax.OpCapture:
		return needOf(re.Sub[0])
	case syntax.OpPlus:
		return need{some: needOf(re.Sub[0]).sets()}
	case syntax.OpQuest:
		if n := needOf(re.Sub[0]); n.exact != nil && len(n.exact) < maxAlternatives {
			return need{exact: distinct(append(n.exact, ""))}
		}
	case syntax.OpConcat:
		return concatNeed(re.Sub)
	case syntax.OpAlternate:
		return alternateNeed(re.Sub)
	}
	return need{}
}

// classNeed is of a class: of a few characters each of them.
func classNeed(ranges []rune) need {
	n := need{exact: []string{}}
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if n.exact = append(n.exact, string(words(string(r)))); len(n.exact) > 2*maxAlternatives {
				return need{}
			}
		}
	}
	if n.exact = distinct(n.exact); len(n.exact) == 0 || len(n.exact) > maxAlternatives {
		return need{}
	}
	return n
}

// concatNeed puts parts together for as long as it is known what they are.
func concatNeed(subs []*syntax.Regexp) need {
	var all [][]string
	run, whole := []string{""}, true
	note := func(sets ...[]string) {
		if len(all) < 8*maxClauses {
			all = append(all, sets...)
		}
	}
	for _, sub := range subs {
		n := needOf(sub)
		if joined := join(run, n.exact); n.exact != nil && joined != nil {
			run = joined
			continue
		}
		whole = false
		note(need{exact: run}.sets()...)
		note(n.some...)
		if run = n.exact; run == nil {
			run = []string{""}
		}
	}
	if whole {
		return need{exact: run}
	}
	note(need{exact: run}.sets()...)
	return need{some: all}
}

// join gives each of a followed by each of b, or nil when they are too many.
func join(a, b []string) []string {
	if len(a)*len(b) > maxAlternatives {
		return nil
	}
	var all []string
	for _, x := range a {
		for _, y := range b {
			all = append(all, string(words(x+y)))
		}
	}
	return distinct(all)
}

func alternateNeed(subs []*syntax.Regexp) need {
	exact, some := []string{}, []string{}
	for _, sub := range subs {
		n := needOf(sub)
		if n.exact == nil {
			exact = nil
		}
		if exact != nil {
			exact = append(exact, n.exact...)
		}
		best := n.best()
		if best == nil {
			some = nil
		}
		if some != nil {
			some = append(some, best...)
		}
	}
	exact, some = distinct(exact), distinct(some)
	switch {
	case exact != nil && len(exact) <= maxAlternatives:
		return need{exact: exact}
	case len(some) > 0 && len(some) <= maxAlternatives:
		return need{some: [][]string{some}}
	}
	return need{}
}

func distinct(set []string) []string {
	if set == nil {
		return nil
	}
	slices.Sort(set)
	return slices.Compact(set)
}
