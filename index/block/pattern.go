package block

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"harvest/index"
	"harvest/index/dict"
	"harvest/index/match"
	"harvest/index/query"
)

// A pattern is one of the query, compiled: for whole words as they are in the
// dictionary, or for text.
type pattern struct {
	*match.Pattern
	q     query.Node
	text  bool   // for text, or for words as they are written
	fuzzy string // folded text of a Fuzzy
}

// pattern compiles a node, once a search.
func (s *search) pattern(q query.Node) (*pattern, error) {
	key := q.String()
	if p := s.patterns[key]; p != nil {
		return p, nil
	}
	p := &pattern{q: q, text: s.opt.Case}
	opt := match.Options{Case: s.opt.Case, Costs: match.Costs(s.opt.Costs)}
	expr := ""
	switch q := q.(type) {
	case query.Wild:
		opt.Syntax, expr = match.Wild, s.folded(q.Pattern)
	case query.Regexp:
		opt.Syntax, expr = match.Regexp, q.Expr
		if q.Text {
			p.text, opt.Lines = true, true
		} else {
			expr = s.foldedExpr(expr)
		}
	case query.Fuzzy:
		opt.Errors, opt.Parts, expr = q.Errors, true, q.Text
		if q.Phrase {
			p.text = true
		} else {
			expr = s.folded(expr)
			p.fuzzy = expr
		}
	}
	var err error
	if p.Pattern, err = match.Compile(expr, opt); err != nil {
		return nil, err
	}
	s.patterns[key] = p
	return p, nil
}

func (s *search) folded(text string) string {
	if s.opt.Case {
		return text
	}
	return string(index.Fold(nil, text))
}

// foldedExpr folds the characters of an expression that are not ASCII; the
// others are matched in any case.
func (s *search) foldedExpr(expr string) string {
	var b strings.Builder
	for _, r := range expr {
		if r >= utf8.RuneSelf {
			b.WriteString(s.folded(string(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// pattern bounds a pattern. One for whole words matches those of the dictionary,
// hashed ones, and compounds, which are not there.
func (e *evaluator) pattern(q query.Node, attr string) bound {
	p, err := e.s.pattern(q)
	if err != nil {
		return e.fail(err)
	}
	if p.text {
		return bound{e.empty(), e.holding(p, attr)}
	}
	f := e.find(attr)
	e.matching(p, func(term string, ord int) { f.addAt(term, ord) })
	b := f.bound(false)
	if p.hashes() {
		e.widen(&b, e.beginning(string(hashedMark), attr))
	}
	if e.s.grain == Tiny && p.pairs() {
		e.widen(&b, e.term(string(cjkTerm[:1]), attr))
	}
	kind := p.compounds()
	if e.s.set.NoNumbers && p.accepts(1, "0123456789") {
		kind = anyOnes // a part that matches may be left out
	}
	switch kind {
	case cutOnes:
		e.widen(&b, e.term(string(cutTerm[:1]), attr))
	case anyOnes:
		more := e.compounds(p, attr)
		b.may.or(more)
		e.drop(more)
	}
	return b
}

func (e *evaluator) widen(b *bound, c bound) {
	b.may.or(c.may)
	e.drop(c.must, c.may)
}

// matching gives the words of the dictionary that match. They are found by the
// automaton or, if the pattern begins with anything and holds a literal, by
// that, which is faster than to walk everywhere.
func (e *evaluator) matching(p *pattern, yield func(term string, ord int)) {
	n := 0
	check := func(term, _ []byte, ord int) bool {
		if !marked(term) {
			if _, ok := p.Match(term); ok {
				if n++; e.s.opt.Limits.Terms > 0 && n > e.s.opt.Limits.Terms {
					e.s.limited = fmt.Sprintf("%d words of a pattern", e.s.opt.Limits.Terms)
					return false
				}
				yield(string(term), ord)
			}
		}
		return e.err == nil && (ord%1024 != 0 || e.ctx.Err() == nil)
	}
	for _, l := range p.Literals() {
		if strings.ContainsFunc(l, joiner) {
			return // no part of a word has it
		}
	}
	d := e.p.terms.dict
	var err error
	if lits := p.Required(); p.fuzzy == "" && p.Prefix() == "" && len(lits) > 0 && shortest(lits) >= 2 {
		err = d.Contains(e.s.cache, lits, check)
	} else {
		err = index.Accepted(d, e.s.cache, p.Pattern, []byte(p.Prefix()), check)
	}
	if err != nil {
		e.fail(e.p.Corrupt("%v", err))
	}
}

func shortest(list []string) int {
	n := len(list[0])
	for _, s := range list {
		n = min(n, len(s))
	}
	return n
}

// joiner tells whether a character is none of a part of a compound.
func joiner(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) }

// hexadecimal tells whether a hashed word can have a character.
func hexadecimal(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r == 'x' }

// pairs tells whether the pattern may match two characters of Chinese or
// Japanese, or one.
func (p *pattern) pairs() bool {
	if p.fuzzy != "" {
		plain := 0
		for _, r := range p.fuzzy {
			if alnum(byte(r)) && r < utf8.RuneSelf {
				plain++
			}
		}
		return plain <= p.Errors()+2
	}
	for _, l := range append(p.Literals(), p.Prefix()) {
		if strings.ContainsFunc(l, func(r rune) bool { return r < utf8.RuneSelf }) {
			return false
		}
	}
	return true
}

// hashes tells whether the pattern may match a hashed word.
func (p *pattern) hashes() bool {
	if p.fuzzy != "" {
		other := 0
		for _, r := range p.fuzzy {
			if !hexadecimal(r) && r != '<' && r != '>' {
				other++
			}
		}
		return other <= p.Errors() && utf8.RuneCountInString(p.fuzzy)+p.Errors() >= hashedFrom
	}
	for _, l := range append(p.Literals(), p.Prefix()) {
		if strings.ContainsFunc(l, func(r rune) bool { return !hexadecimal(r) }) {
			return false
		}
	}
	return p.accepts(hashedFrom, "0123456789abcdefx")
}

// accepts tells whether the pattern may match a string of so many or more of
// some letters.
func (p *pattern) accepts(length int, letters string) bool {
	const enough = 1 << 12
	type place struct{ state, length int }
	a := p.Automaton()
	todo := []place{{a.Start(), 0}}
	seen := map[place]bool{todo[0]: true}
	for len(todo) > 0 && len(seen) < enough {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at.state < 0 {
			continue
		}
		if at.length == length && a.Accept(at.state) {
			return true
		}
		for i := range len(letters) {
			next := place{a.Step(at.state, letters[i]), min(at.length+1, length)}
			if next.state >= 0 && !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return len(todo) > 0
}

// What compounds a pattern may match in documents none of whose parts match.
const (
	noOnes  = iota
	cutOnes // such as were cut
	anyOnes
)

// compounds: what begins with something that is no joiner, or holds it, matches
// the part that does as well. What ends with it too, if it was not cut.
func (p *pattern) compounds() int {
	switch q := p.q.(type) {
	case query.Fuzzy:
		if p.Errors() > 0 || strings.ContainsFunc(p.fuzzy, joiner) {
			return anyOnes
		}
	case query.Wild:
		lit := strings.Trim(p.String(), "*")
		switch s := p.String(); {
		case strings.ContainsAny(lit, `*?\`) || strings.ContainsFunc(lit, joiner):
			return anyOnes
		case strings.HasPrefix(s, "*") && !strings.HasSuffix(s, "*"):
			return cutOnes
		}
	case query.Regexp:
		re, err := syntax.Parse(p.String(), syntax.Perl|syntax.FoldCase)
		if err != nil {
			return anyOnes
		}
		_ = q
		return compounds(re)
	}
	return noOnes
}

func compounds(re *syntax.Regexp) (n int) {
	switch re.Op {
	case syntax.OpCapture:
		return compounds(re.Sub[0])
	case syntax.OpAlternate:
		for _, s := range re.Sub {
			n = max(n, compounds(s))
		}
		return n
	}
	list := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		list = re.Sub
	}
	begins, ends := false, false // with anything
	if len(list) > 0 && anything(list[0]) {
		list, begins = list[1:], true
	}
	if len(list) > 0 && anything(list[len(list)-1]) {
		list, ends = list[:len(list)-1], true
	}
	for _, s := range list {
		if !joined(s) {
			return anyOnes
		}
	}
	if begins && !ends {
		return cutOnes
	}
	return noOnes
}

func anything(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar && (re.Sub[0].Op == syntax.OpAnyChar || re.Sub[0].Op == syntax.OpAnyCharNotNL)
}

// joined tells whether an expression stands for letters and digits only.
func joined(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return false
	case syntax.OpLiteral:
		return !slices.ContainsFunc(re.Rune, joiner)
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i+1]-re.Rune[i] > 256 {
				return false
			}
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if joiner(r) {
					return false
				}
			}
		}
	}
	for _, s := range re.Sub {
		if !joined(s) {
			return false
		}
	}
	return true
}

// compounds gives the documents that may have a compound that matches.
func (e *evaluator) compounds(p *pattern, attr string) set {
	if p.fuzzy != "" && p.Errors() <= 2 && !e.s.set.NoNumbers {
		if s, ok := e.joining(p, attr); ok {
			return s
		}
	}
	return e.holding(p, attr)
}

// holding gives the documents that have words for the literals that a pattern
// needs.
func (e *evaluator) holding(p *pattern, attr string) set {
	may := e.all()
	for _, l := range p.Literals() {
		e.narrow(may, l, attr)
	}
	if list := p.Required(); len(list) > 0 && !(len(list) == 1 && slices.Contains(p.Literals(), list[0])) {
		any := e.empty()
		for _, l := range list {
			one := e.all()
			e.narrow(one, l, attr)
			any.or(one)
			e.drop(one)
		}
		may.and(any)
		e.drop(any)
	}
	return may
}

// A run is letters and digits of a literal; whether it begins and ends a word
// too, or may stand within one.
type run struct {
	text        string
	begin, ends bool
}

// runs are those of a literal that words hold as they are: of ASCII.
func runs(literal string) (out []run) {
	for i := 0; i < len(literal); {
		j := i
		for j < len(literal) && alnum(literal[j]) {
			j++
		}
		if j > i && j-i <= index.MaxWord-8 {
			out = append(out, run{
				strings.ToLower(literal[i:j]),
				i > 0 && literal[i-1] < utf8.RuneSelf,
				j < len(literal) && literal[j] < utf8.RuneSelf,
			})
		}
		i = max(j, i+1)
	}
	return out
}

func alnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// narrow leaves the documents in may that have words for all of a literal.
func (e *evaluator) narrow(may set, literal, attr string) {
	all := runs(literal)
	for _, r := range all {
		if len(r.text) == 1 && !(r.begin && r.ends) && len(all) > 1 {
			continue // nearly all have it
		}
		if e.s.set.NoNumbers && isNumber([]byte(r.text)) {
			continue
		}
		f := e.find(attr)
		e.hold(f, r)
		b := f.bound(true)
		may.and(b.may)
		e.drop(b.must, b.may)
	}
}

// hold adds the words that hold a run, and those that are not known well.
func (e *evaluator) hold(f *finding, r run) {
	d := e.p.terms.dict
	add := func(term, _ []byte, ord int) bool {
		f.addAt(string(term), ord)
		return e.err == nil
	}
	var err error
	switch {
	case r.begin && r.ends:
		f.add(string(address([]byte(r.text), &e.key)))
	case r.begin:
		err = d.Prefix([]byte(r.text), add)
	default:
		err = d.Contains(e.s.cache, []string{r.text}, add)
	}
	if err == nil && !(r.begin && r.ends) && strings.IndexFunc(r.text, func(c rune) bool { return !hexadecimal(c) }) < 0 {
		err = d.Prefix([]byte{hashedMark}, add)
	}
	if err != nil {
		e.fail(e.p.Corrupt("%v", err))
	}
	f.add(string(cutTerm[:1]))
}

// joining gives the documents that have the parts of a compound that a fuzzy
// word matches: it follows the automaton through words and joiners in turn,
// keeping for each state the documents with words that lead there. It gives up
// when there are too many.
func (e *evaluator) joining(p *pattern, attr string) (set, bool) {
	const most = 128
	a := p.Automaton()
	found := e.empty()
	at := map[int]set{a.Start(): e.all()}
	seps := joiners(p.fuzzy)
	walks := 0
	for depth := 0; len(at) > 0 && depth <= p.Errors()+strings.Count(p.fuzzy, "")+1; depth++ {
		next := make(map[int]set)
		for state, docs := range at {
			if walks++; walks > most || e.err != nil {
				return nil, false
			}
			f := &from{a, state, seps, depth > 0, p.Errors() <= 2 && !strings.ContainsFunc(p.fuzzy, joiner)}
			e.follow(f, docs, attr, found, next)
		}
		for _, s := range at {
			e.drop(s)
		}
		at = next
	}
	if p.hashes() || hexadecimals(p.fuzzy)+p.Errors() >= hashedFrom {
		b := bound{found, found}
		e.widen(&b, e.beginning(string(hashedMark), attr))
	}
	return found, true
}

func hexadecimals(text string) (n int) {
	for _, r := range text {
		if hexadecimal(r) {
			n++
		}
	}
	return n
}

// joiners are characters that stand for all those that join parts: those of
// the pattern, and another.
func joiners(text string) (out []string) {
	out = []string{"_", ".", "'", ":", ",", ";", "·"}
	for _, r := range text {
		if joiner(r) && !slices.Contains(out, string(r)) {
			out = append(out, string(r))
		}
	}
	return out
}

// A from is an automaton begun in another state, that accepts what a joiner
// may follow, or ends a match.
type from struct {
	match.Automaton
	start int
	seps  []string
	ends  bool
	costs bool // no joiner is part of the pattern, so that each is an error
}

func (f *from) Start() int { return f.start }

// Step dies as well where no error is left for a joiner that has to follow.
func (f *from) Step(state int, b byte) int {
	state = f.Automaton.Step(state, b)
	if state >= 0 && f.costs && !f.ends && b < utf8.RuneSelf && f.Automaton.Step(state, '_') < 0 {
		return -1
	}
	return state
}

// Live is that of the automaton, which may live on where Step does not.
func (f *from) Live(state, least int) int {
	if l, ok := f.Automaton.(dict.Liver); ok {
		return l.Live(state, least)
	}
	return least
}

func (f *from) Accept(state int) bool {
	return f.ends && f.Automaton.Accept(state) || slices.ContainsFunc(f.seps, func(j string) bool { return steps(f.Automaton, state, j) >= 0 })
}

func steps[T string | []byte](a match.Automaton, state int, s T) int {
	for i := 0; i < len(s) && state >= 0; i++ {
		state = a.Step(state, s[i])
	}
	return state
}

// follow takes the words that lead on from a state.
func (e *evaluator) follow(f *from, docs set, attr string, found set, next map[int]set) {
	err := e.p.terms.dict.Walk(e.s.cache, f, nil, func(term, _ []byte, ord int) bool {
		if marked(term) {
			return true
		}
		end := steps(f.Automaton, f.start, term)
		if end < 0 {
			return true
		}
		may := e.wordIn(string(term), ord, attr)
		may.and(docs)
		if !may.empty() {
			if f.ends && f.Automaton.Accept(end) {
				found.or(may)
			}
			e.joint(f.Automaton, end, may, f.seps, next)
		}
		e.drop(may)
		return e.err == nil
	})
	if err != nil {
		e.fail(e.p.Corrupt("%v", err))
	}
}

// wordIn gives the documents that may have a word.
func (e *evaluator) wordIn(term string, ord int, attr string) set {
	may := e.empty()
	if attr != "" {
		f := e.find(attr)
		f.addAt(term, ord)
		b := f.bound(true)
		may.or(b.may)
		e.drop(b.must, b.may)
	} else if e.s.counts.words++; e.words.list(ord, &e.li) {
		e.p.documents(&e.li, may)
	} else {
		e.fail(e.p.Corrupt("list of %q", term))
	}
	return may
}

// joint adds documents to the states that joiners lead to from one.
func (e *evaluator) joint(a match.Automaton, state int, docs set, seps []string, next map[int]set) {
	for _, j := range seps {
		to := steps(a, state, j)
		if to < 0 {
			continue
		}
		if next[to] == nil {
			next[to] = e.empty()
		}
		next[to].or(docs)
		if j == "_" { // of which several may follow one another
			e.joint(a, to, docs, seps[:1], next)
		}
	}
}
