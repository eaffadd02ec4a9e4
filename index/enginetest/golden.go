package enginetest

import (
	"strings"
	"testing"

	"harvest/index"
	"harvest/index/match"
)

// The examples of docs/query.6.md, and more: what is found is worked out by hand.

func goldenDocs() []index.Doc {
	return []index.Doc{
		doc(1, "Title", "Plan 9 from Bell Labs", "Body", "The net/http and x86_64 of c++. spin_lock() is javax.swing", "Size", "100", "Date", "2020-01-01", "Type", "html"),
		doc(2, "title", "GRÖSSE der Felder", "body", "plan for 9; the the", "size", "10K", "date", "2021-06-15 10:00:00", "type", "HTML"),
		doc(3, "body", "日本語 text\nbell\tlabs", "Body", strings.Repeat("abcdefgh", 20), "size", "5000", "date", "1600000000", "id", "東京都"),
		doc(4, "body", "e\u0301tude \xff\xfe 3\u00bd don't color colours", "author", "Rob Pike", "author", "Ken Thompson", "type", "text  html", "size", "-3.5"),
		doc(5, "author", "Pike Ken", "title", "kernel mutex_lock", "body", "filesystem file-system file system", "date", "2019-12", "empty", ""),
		doc(6, "title", "Étude", "body", "teh quick kernal\nplan 9 is javax swing", "size", "12", "type", ""),
		doc(7, "body", "one two three four five six seven eight nine ten eleven twelve", "date", "2021", "size", "2021"),
	}
}

// doc makes a document of name, text pairs; its ID begins with the number.
func doc(n byte, pairs ...string) index.Doc {
	d := index.Doc{ID: index.ID{n}}
	for i := 0; i < len(pairs); i += 2 {
		d.Fields = append(d.Fields, index.Field{Name: pairs[i], Text: pairs[i+1]})
	}
	return d
}

var (
	plainOptions = index.Options{}
	caseOptions  = index.Options{Case: true}
	oneError     = index.Options{Errors: 1}
	stemmed      = index.Options{Stem: stem}
	noBody       = index.Options{Weight: func(a string) float64 { return map[string]float64{"title": 2}[a] }}
)

// golden queries; every document they find.
var goldenQueries = []struct {
	text string
	opt  index.Options
	want string
}{
	// words
	{"plan", plainOptions, "1 2 6"},
	{"PLAN", plainOptions, "1 2 6"},
	{"grösse", plainOptions, "2"},
	{"grosse", plainOptions, "2"},
	{"größe", plainOptions, "2"},
	{"etude", plainOptions, "4 6"},
	{"étude", plainOptions, "4 6"},
	{"net/http", plainOptions, "1"},
	{"http/net", plainOptions, ""},
	{"c++", plainOptions, "1"},
	{"3\u00bd", plainOptions, "4"},
	{strings.Repeat("abcdefgh", 20), plainOptions, "3"},
	{strings.Repeat("abcdefgh", 8) + "zzz", plainOptions, "3"},
	{"nothing", plainOptions, ""},

	// compounds
	{"x86_64", plainOptions, "1"},
	{"x86", plainOptions, "1"},
	{"javax.swing", plainOptions, "1 6"},
	{"javax.swin", plainOptions, ""},
	{"java.swing", plainOptions, ""},
	{"swing.javax", plainOptions, ""},
	{`"javax.swing"`, plainOptions, "1 6"},
	{`"javax swing"`, plainOptions, "1 6"},
	{"don't", plainOptions, "4"},
	{"don’t", plainOptions, "4"},
	{"mutex_lock or spin_lock", plainOptions, "1 5"},
	{"lock", plainOptions, "1 5"},

	// Chinese and Japanese
	{"日本語", plainOptions, "3"},
	{"本語", plainOptions, "3"},
	{"日", plainOptions, "3"},
	{"本", plainOptions, "3"},
	{"語", plainOptions, "3"},
	{"日語", plainOptions, ""},
	{"東京", plainOptions, "3"},
	{"京都", plainOptions, "3"},
	{`"日本語 text"`, plainOptions, "3"},

	// phrases
	{`"plan 9"`, plainOptions, "1 6"},
	{`"bell labs"`, plainOptions, "1 3"},
	{`"the the"`, plainOptions, "2"},
	{`"pike ken"`, plainOptions, "5"},
	{`"ken thompson"`, plainOptions, "4"},
	{`"file system"`, plainOptions, "5"},

	// bags, operators
	{"plan felder", plainOptions, "1 2 6"},
	{"how to plan a mutex_lock?", plainOptions, "1 2 5 6"},
	{"plan and bell", plainOptions, "1"},
	{"(plan bell)", plainOptions, "1"},
	{"plan or bell", plainOptions, "1 2 3 6"},
	{"plan not bell", plainOptions, "2 6"},
	{"plan except (bell or felder)", plainOptions, "6"},
	{"not plan", plainOptions, "3 4 5 7"},
	{"not not plan", plainOptions, "1 2 6"},
	{"not (plan or kernel) and not two", plainOptions, "3 4"},
	{"*", plainOptions, "1 2 3 4 5 6 7"},
	{"* except plan", plainOptions, "3 4 5 7"},

	// attributes
	{"title : plan", plainOptions, "1"},
	{"TITLE:GROSSE", plainOptions, "2"},
	{"body : (plan or bell)", plainOptions, "2 3 6"},
	{"author : (rob thompson)", plainOptions, "4"},
	{"author : (pike and ken)", plainOptions, "4 5"},
	{"not title : (not plan)", plainOptions, "1"},
	{"title : (not plan)", plainOptions, "2 3 4 5 6 7"},
	{"title : *", plainOptions, "1 2 5 6"},
	{"empty : *", plainOptions, "5"},
	{"not type : *", plainOptions, "3 5 7"},
	{"nothing : plan", plainOptions, ""},
	{"nothing : *", plainOptions, ""},
	{"plan", noBody, "1"},
	{"body : plan", noBody, "2 6"},

	// patterns
	{"kern*", plainOptions, "5 6"},
	{"*system", plainOptions, "5"},
	{"colo*r*", plainOptions, "4"},
	{"colou?s", plainOptions, "4"},
	{"t?h", plainOptions, "6"},
	{"spin_*", plainOptions, "1"},
	{"*_lock", plainOptions, "1 5"},
	{"GRÖ*", plainOptions, "2"},
	{"title : kern*", plainOptions, "5"},
	{"*京", plainOptions, "3"},
	{"/colou?rs?/", plainOptions, "4"},
	{"/kern[ae]l/", plainOptions, "5 6"},
	{"/KERN.*/", plainOptions, "5 6"},
	{"/kern/", plainOptions, ""},
	{"/[a-z]+_lock/", plainOptions, "1 5"},
	{"/größe|x/", plainOptions, "2"},
	{"title : /.*l/", plainOptions, "1 5"},
	{`/net\/h/t`, plainOptions, "1"},
	{"/etude/t", plainOptions, ""},
	{"/^bell\\s+labs$/t", plainOptions, "3"},
	{"/KERNAL$/t", plainOptions, "6"},
	{"/kernal\\nplan/t", plainOptions, ""},

	// errors
	{"kernel~1", plainOptions, "5 6"},
	{"kernel~0", plainOptions, "5"},
	{"the~1", plainOptions, "1 2 6"},
	{"thee~1", plainOptions, "1 2 7"},
	{"kernxl~", plainOptions, "5 6"},
	{"kernel~", plainOptions, "5"},
	{"title : kernel~", plainOptions, "5"},
	{"body : kernel~", plainOptions, "6"},
	{"<kern>al~1", plainOptions, "5 6"},
	{"k<erna>l~1", plainOptions, "6"},
	{"felers~2", plainOptions, "2"},
	{"jvaax.swing~1", plainOptions, "1"},
	{`"teh quikc"~1`, plainOptions, "6"},
	{`"the quikc"~1`, plainOptions, ""},
	{`"the quikc"~2`, plainOptions, "6"},
	{`"the <quikc>"~2`, plainOptions, ""},
	{`"labbs"~1`, plainOptions, "1 3"},
	{"kernel", oneError, "5 6"},
	{`"kernel"`, oneError, "5"},
	{"teh", index.Options{Errors: 1, Costs: match.Costs{Transpose: 2}}, "6 7"},
	{"teh", oneError, "1 2 6 7"},
	{"kernel~1", index.Options{Costs: match.Costs{Substitute: 2}}, "5"},

	// stems
	{"colours", plainOptions, "4"},
	{"colours", stemmed, "4"},
	{"locking", stemmed, "1 5"},
	{`"locking"`, stemmed, ""},
	{"plans", stemmed, "1 2 6"},
	{"plans adj 9", stemmed, "1 6"},
	{"plans", index.Options{Stem: stem, Case: true}, ""},

	// near
	{"plan near labs", plainOptions, "1"},
	{"labs near plan", plainOptions, "1"},
	{"plan near/3 labs", plainOptions, ""},
	{"plan near/4 labs", plainOptions, "1"},
	{"plan adj 9", plainOptions, "1 6"},
	{"9 adj plan", plainOptions, ""},
	{"plan adj/2 9", plainOptions, "1 2 6"},
	{"9 near/2 plan", plainOptions, "1 2 6"},
	{"one near twelve", plainOptions, ""},
	{"one near/11 twelve", plainOptions, "7"},
	{"two near two", plainOptions, ""},
	{"the adj the", plainOptions, "2"},
	{"one adj two adj three", plainOptions, "7"},
	{"one adj three adj two", plainOptions, ""},
	{"one near/2 three near/2 two", plainOptions, "7"},
	{`"one two" near/2 "four five"`, plainOptions, "7"},
	{`"one two" near "two three"`, plainOptions, ""},
	{"(one or nine) adj (ten or two)", plainOptions, "7"},
	{"kern* near/2 (the~1 or quick)", plainOptions, "6"},
	{"/t.*/ adj/2 four", plainOptions, "7"},
	{"rob near/99 thompson", plainOptions, ""},
	{"javax.swing near/2 is", plainOptions, "1 6"},
	{"title : (plan near labs)", plainOptions, "1"},
	{"body : (plan near labs)", plainOptions, ""},

	// comparisons
	{"size > 1000", plainOptions, "2 3 7"},
	{"size > 100", plainOptions, "2 3 7"},
	{"size >= 100", plainOptions, "1 2 3 7"},
	{"size < 100", plainOptions, "4 6"},
	{"size : 12..100", plainOptions, "1 6"},
	{"size >= 10K", plainOptions, "2"},
	{"size = 10240", plainOptions, "2"},
	{"size < 0", plainOptions, "4"},
	{"size <= 12", plainOptions, "4 6"},
	{"size : 10..200", plainOptions, "1 6"},
	{"size : ..12", plainOptions, "4 6"},
	{"size : 5000..", plainOptions, "2 3"},
	{"size : (> 10 and < 2000)", plainOptions, "1 6"},
	{"size != 100", plainOptions, "2 3 4 5 6 7"},
	{"size > a", plainOptions, ""},
	{"date >= 2020-01-01", plainOptions, "1 2 3 7"},
	{"date : 2020-01-01..2020-12-31", plainOptions, "1 3"},
	{"date < 2020-01", plainOptions, "5"},
	{`date = "2021-06-15 10:00:00"`, plainOptions, "2"},
	{`date : "2021-06-15 09:59:59".."2021-06-15T10:00:00Z"`, plainOptions, "2"},
	{"date = 2021", plainOptions, "7"},
	{"date > 2021", plainOptions, "3"},
	{"date > 2021-01-01", plainOptions, "2"},
	{"date < 2021-01-01", plainOptions, "1 3 5"},
	{"type > html", plainOptions, "4"},
	{"type = html", plainOptions, "1 2"},
	{"type = HTML", plainOptions, "1 2"},
	{`type = "text html"`, plainOptions, "4"},
	{`type = ""`, plainOptions, "6"},
	{"type : html", plainOptions, "1 2 4"},
	{"type : i..z", plainOptions, "4"},
	{"title > k and title < m", plainOptions, "5"},
	{"plan type = html", plainOptions, "1 2"},

	// case
	{"plan", caseOptions, "2 6"},
	{"Plan", caseOptions, "1"},
	{`"Plan 9"`, caseOptions, "1"},
	{`"plan 9"`, caseOptions, "6"},
	{"Etude", caseOptions, "6"},
	{"P*", caseOptions, "1 4 5"},
	{"/[A-Z].*s/", caseOptions, "1"},
	{"/KERNAL/t", caseOptions, ""},
	{"plan near 9", caseOptions, "2 6"},
	{"Kernel~1", caseOptions, "5"},
	{"type = HTML", caseOptions, "1 2"},
	{"javax.swing", caseOptions, "1 6"},
	{"Javax.swing", caseOptions, ""},
}

func (s suite) golden(t *testing.T) {
	p := s.fresh(t)
	p.apply(goldenDocs(), nil, "m")
	for _, tt := range goldenQueries {
		if s.opt.NoNumbers && strings.ContainsAny(tt.text, "0123456789") {
			continue
		}
		if got := p.set(tt.text, tt.opt); got != tt.want {
			t.Errorf("%s (%s): got documents %q, want %q", tt.text, optionText(tt.opt), got, tt.want)
		}
	}
}
