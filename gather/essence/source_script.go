package essence

import "bytes"

// scriptLanguages are those of scripts, most without brackets around blocks.
func scriptLanguages() map[string]*language {
	shSyntax := newSyntax(token{escape, `\`, ""}, token{rawQuoted, "$'", "'"}, token{wordComment, "#", ""}, token{heredoc, "<<", ""},
		token{rawQuoted, "'", "'"}, token{longQuoted, `"`, `"`})
	pySyntax := newSyntax(token{lineComment, "#", ""}, token{docQuoted, `"""`, `"""`}, token{docQuoted, "'''", "'''"},
		token{quoted, `"`, `"`}, token{quoted, "'", "'"})
	perlSyntax := newSyntax(token{startBlock, "=pod", "=cut"}, token{startBlock, "=head", "=cut"}, token{startBlock, "=over", "=cut"}, token{startBlock, "=item", "=cut"},
		token{startBlock, "=begin", "=cut"}, token{startBlock, "=for", "=cut"}, token{startBlock, "=encoding", "=cut"}, token{wordComment, "#", ""},
		token{heredoc, "<<", ""}, token{startBlock, "__END__", "\x00"}, token{startBlock, "__DATA__", "\x00"})
	rubySyntax := newSyntax(token{startBlock, "=begin", "=end"}, token{wordComment, "#", ""}, token{heredoc, "<<", ""},
		token{quoted, `"`, `"`}, token{quoted, "'", "'"}, token{startBlock, "__END__", "\x00"})
	luaSyntax := newSyntax(token{blockComment, "--[[", "]]"}, token{blockComment, "--[=[", "]=]"}, token{lineComment, "--", ""},
		token{rawQuoted, "[[", "]]"}, token{quoted, `"`, `"`}, token{quoted, "'", "'"})
	const vimMaps = "map nmap vmap imap xmap smap omap cmap lmap tmap noremap nnoremap inoremap vnoremap xnoremap snoremap onoremap cnoremap lnoremap tnoremap nm vm im xm om cm no nn vn ino xn ono cno"
	return map[string]*language{
		"Python": {suffixes: "py pyi pyw", syntax: pySyntax, indent: true, goesOn: `\`, rules: []rule{
			{heads: "class", re: re(`^class[ \t]+(\w+)`), opens: "class"},
			{heads: "def async cdef cpdef", re: re(`^(?:async[ \t]+)?(?:def|cp?def)[ \t]+(\w+)`), opens: "body"},
			{re: re(`^(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?::[ \t]*[^=]*[^=!<>+*/%&|^-])?=(?:[^=]|$)`), minor: true},
			{heads: "import", re: re(`^import\b.*[ \t]as[ \t]+(\w+)`), minor: true},
			{heads: "from", re: re(`^from\b.*[ \t]as[ \t]+(\w+)`), minor: true},
			{in: "class", heads: "class", re: re(`^class[ \t]+(\w+)`), opens: "class"},
			{in: "class", heads: "def async cdef cpdef", re: re(`^(?:async[ \t]+)?(?:def|cp?def)[ \t]+(\w+)`), opens: "body"},
			{in: "class", re: re(`^(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?::[ \t]*[^=]*[^=!<>+*/%&|^-])?=(?:[^=]|$)`), minor: true},
			{in: "class", re: re(`^(\w+)[ \t]*:[ \t]*[\w"'\[.]`), minor: true},
			{in: "body", heads: "class", re: re(`^class[ \t]+(\w+)`), opens: "class"},
			{in: "body", heads: "def async cdef cpdef", re: re(`^(?:async[ \t]+)?(?:def|cp?def)[ \t]+(\w+)`), opens: "body"},
			{in: "body", heads: "import from", re: re(`^(?:import|from)\b.*[ \t]as[ \t]+(\w+)`), minor: true},
		}, imports: re(`^(?:from[ \t]+([\w.]+)[ \t]+import|import[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*))`), heads: "import from"},
		"Perl": {suffixes: "pl pm t perl al ph", syntax: perlSyntax, scan: scanPerl, flat: true, rules: []rule{
			{heads: "sub package", re: re(`^(?:sub|package)[ \t]+([\w:']+)`)},
			{heads: "use", re: re(`^use[ \t]+constant[ \t]+(\w+)`), minor: true},
			{heads: "format", re: re(`^format[ \t]+(\w+)[ \t]*=`), minor: true},
			{re: re(`^([A-Za-z_]\w*)[ \t]*:(?:[^:]|$)`), minor: true},
		}, imports: re(`^(?:use|require)[ \t]+([A-Z][\w:]*)`), heads: "use require"},
		"ShellScript": {suffixes: "sh bash zsh ksh ash dash", syntax: shSyntax, flat: true, rules: []rule{
			{heads: "function", re: re(`^function[ \t]+([\w.:+@-]+)`)},
			{re: re(`^([\w.:+@-]+)[ \t]*\([ \t]*\)`)},
			{heads: "alias", re: re(`^alias[ \t]+(?:-\w[ \t]+)*([\w.+-]+)=`), minor: true},
		}, imports: re(`^(?:\.|source)[ \t]+["']?([\w./${}-]+)`), heads: ". source"},
		"Ruby": {suffixes: "rb rake gemspec ru rbw", syntax: rubySyntax, flat: true, rules: []rule{
			{heads: "class module", re: re(`^(?:class|module)[ \t]+(?:\w+::)*([A-Z]\w*)`)},
			{heads: "def private protected public module_function private_class_method", re: re(`^(?:[a-z_]+[ \t]+)?def[ \t]+(?:(?:self|\w+)(?:\.|::))?(\w+[?!]?|[^\w\s(]+)`)},
			{heads: "attr_accessor attr_reader attr_writer attr", re: re(`^attr(?:_accessor|_reader|_writer)?[ \t(]+(:\w+[?!]?(?:[ \t]*,[ \t]*:\w+)*)`), minor: true},
			{heads: "alias", re: re(`^alias[ \t]+:?([\w?!=]+)`), minor: true},
			{heads: "alias_method", re: re(`^alias_method[ \t(]+:([\w?!=]+)`), minor: true},
			{heads: "define_method", re: re(`^define_method[ \t(]+:([\w?!=]+)`)},
			{re: re(`^([A-Z]\w*)[ \t]*=(?:[^=~>]|$)`), minor: true},
		}, imports: re(`^(?:require|require_relative|load|autoload[ \t(]+:\w+,)[ \t(]*["']([^"']+)`), heads: "require require_relative load autoload"},
		"Lua": {suffixes: "lua", syntax: luaSyntax, flat: true, rules: []rule{
			{heads: "function local", re: re(`^(?:local[ \t]+)?function[ \t]+([\w.:]+)`)},
			{re: re(`^(?:local[ \t]+)?([\w.]+)[ \t]*=[ \t]*function\b`)},
			{re: re(`^([A-Z]\w*)[ \t]*=`), minor: true},
		}, imports: re(`\brequire[ \t(]*["']([^"']+)`)},
		"Tcl": {suffixes: "tcl tk itcl", syntax: newSyntax(token{escape, `\`, ""}, token{startComment, "#", ""}), flat: true, rules: []rule{
			{heads: "proc method", re: re(`^(?:proc|method)[ \t]+\{?(?:[^\s:{}]*::)*([^\s{}]+)`)},
			{heads: "namespace", re: re(`^namespace[ \t]+eval[ \t]+(?:::)?([^\s{}$]+)`)},
			{heads: "oo snit itcl", re: re(`^(?:oo::class[ \t]+create|snit::(?:type|widget(?:adaptor)?)|itcl::class)[ \t]+(?:::)?([\w:.]+)`)},
			{heads: "typemethod constructor", re: re(`^typemethod[ \t]+(\w+)`)},
		}, imports: re(`^(?:package[ \t]+require[ \t]+(?:-exact[ \t]+)?([\w:]+)|source[ \t]+([\w./]+))`), heads: "package source"},
		"Makefile": {suffixes: "mk mak make", syntax: newSyntax(token{startComment, "#", ""}), scan: scanMake,
			imports: re(`^-?s?include[ \t]+(\S.*)`), heads: "include - sinclude"},
		"Dockerfile": {suffixes: "dockerfile", syntax: newSyntax(token{startComment, "#", ""}), flat: true, fold: true, rules: []rule{
			{heads: "from", re: re(`(?i)^from[ \t]+\S+[ \t]+as[ \t]+(\S+)`)},
			{heads: "arg env", re: re(`(?i)^(?:arg|env)[ \t]+(\w+)`), minor: true},
		}, imports: re(`(?i)^from[ \t]+(?:--\S+[ \t]+)?(\S+)`)},
		"CMake": {suffixes: "cmake", syntax: newSyntax(token{blockComment, "#[[", "]]"}, token{lineComment, "#", ""}, token{longQuoted, `"`, `"`}), flat: true, fold: true, rules: []rule{
			{heads: "function macro project add_executable add_library add_custom_target", re: re(`(?i)^(?:function|macro|project|add_(?:executable|library|custom_target))[ \t]*\([ \t]*([\w.:$-]+)`)},
			{heads: "option set", re: re(`(?i)^(?:option|set)[ \t]*\([ \t]*([\w$-]+)`), minor: true},
		}, imports: re(`(?i)^(?:include|find_package|add_subdirectory)[ \t]*\([ \t]*([\w./:$-]+)`)},
		"Vim": {suffixes: "vim vimrc", syntax: newSyntax(token{startComment, `"`, ""}), flat: true, scan: scanVim, rules: []rule{
			{heads: "function func fu fun funct def export", re: re(`^(?:export[ \t]+)?(?:fu\w*!?|def!?)[ \t]+((?:[a-zA-Z]:|<[sS][iI][dD]>)?[\w#.]+)[ \t]*\(`)},
			{heads: "command com", re: re(`^com(?:mand)?!?[ \t]+(?:-\S+[ \t]+)*([A-Z]\w*)`)},
			{heads: "augroup aug", re: re(`^aug(?:roup)?[ \t]+(\w+)`), minor: true},
			{heads: "let const final var", re: re(`^(?:let|const|final|var)[ \t]+((?:[gsbwtv]:)?[\w#]+)[ \t]*(?::[ \t]*[\w<>]+[ \t]*)?(?:[-+.*/]|\.\.)?=`), minor: true},
			{heads: vimMaps, re: re(`^\w+!?[ \t]+(?:<(?:silent|buffer|expr|unique|script|nowait|special)>[ \t]*)*(\S+)`), minor: true},
		}, imports: re(`^(?:runtime!?|source)[ \t]+(\S+)`), heads: "runtime source"},
		"PowerShell": {suffixes: "ps1 psm1 psd1", syntax: newSyntax(token{blockComment, "<#", "#>"}, token{wordComment, "#", ""}, token{rawQuoted, "'", "'"}), flat: true, fold: true, rules: []rule{
			{heads: "function filter class enum workflow", re: re(`(?i)^(?:function|filter|class|enum|workflow)[ \t]+(?:\w+:)?([\w-]+)`)},
		}, imports: re(`(?i)^(?:import-module|using[ \t]+module)[ \t]+(\S+)`)},
		"Batch": {suffixes: "bat cmd", syntax: newSyntax(token{startComment, "REM", ""}, token{startComment, "rem", ""}, token{startComment, "@rem", ""}, token{startComment, "@REM", ""}, token{startComment, "::", ""}), flat: true, rules: []rule{
			{heads: ":", re: re(`^:([\w-]+)`)},
		}, imports: re(`(?i)^call[ \t]+([^:\s]\S*)`)},
		"Sed": {suffixes: "sed", syntax: newSyntax(token{startComment, "#", ""}), flat: true, rules: []rule{
			{heads: ":", re: re(`^:[ \t]*(\w+)`)},
		}},
		"OtherCode": {suffixes: "cr coffee rkt sml pike hx vala e st groff awkscript cob cbl", syntax: newSyntax(token{lineComment, "//", ""}, token{blockComment, "/*", "*/"}, token{wordComment, "#", ""}, token{lineComment, "--", ""}), flat: true, fold: true, rules: []rule{
			{re: re(`(?i)^(?:local[ \t]+|public[ \t]+|static[ \t]+|private[ \t]+)*(?:def|class|module|function|fun|sub|procedure|proc|fn|func|let|val|program|subroutine|package|struct|type|interface|\((?:defun|define|defmacro|defn))[ \t(]+([\w.:?!-]+)`)},
		}, imports: re(`^(?:import|include|require|use|using|open)[ \t]+["<]?([\w./:]+)`)},
	}
}

// scanVim finds names by the rules, without the variables of functions that are
// local to them.
func scanVim(l *language, code []byte, s *symbols) {
	depth := 0
	for line := range bytes.Lines(code) {
		text := bytes.TrimLeft(line, " \t:")
		switch word := string(firstWord(text)); {
		case vimBegin[word]:
			if bytes.IndexByte(text, '(') > 0 {
				depth++
			}
		case vimEnd[word]:
			depth = max(depth-1, 0)
		case depth > 0 && (word == "let" || word == "const" || word == "var" || word == "final"):
			if name := bytes.TrimLeft(text[len(word):], " \t"); len(name) < 2 || name[1] != ':' {
				fillBlank(line)
			}
		}
	}
	l.lines(code, s)
}

// Words that begin and end functions of Vim.
var (
	vimBegin = wordSet("function func fu fun funct functi functio def")
	vimEnd   = wordSet("endfunction endfunc endf endfu endfun endfunct enddef")
)

var (
	perlConstants = expression(`use[ \t]+constant[ \t]*\{`)
	perlConstant  = expression(`(?m)^[ \t]*(\w+)[ \t]*=>`)
)

// scanPerl finds names by the rules, and the constants of blocks.
func scanPerl(l *language, code []byte, s *symbols) {
	l.lines(code, s)
	for _, m := range perlConstants().FindAllIndex(code, 100) {
		block, _, _ := bytes.Cut(code[m[1]:min(len(code), m[1]+16<<10)], []byte("\n}"))
		block, _, _ = bytes.Cut(block, []byte("};"))
		for _, k := range perlConstant().FindAllSubmatch(block, 1000) {
			s.add(k[1], true)
		}
	}
}

// lispLanguages are those of lists.
func lispLanguages() map[string]*language {
	return map[string]*language{
		"Lisp": {suffixes: "el lisp lsp cl elisp asd", syntax: lispSyntax, flat: true, fold: true, rules: []rule{
			{heads: "(", re: re(`(?i)^\((?:cl-)?def(?:un|subst|macro|advice|alias|generic|method|ine-derived-mode|ine-minor-mode|ine-globalized-minor-mode|ine-inline|struct|class|type|ine-compiler-macro|ine-key-after|un-rcirc-command|package|setf)\*?[ \t]+['(]*([^\s()'"]+)`)},
			{heads: "(", re: re(`(?i)^\(def(?:var|var-local|const|custom|face|group|parameter|constant|image|ine-error|ine-abbrev-table)[ \t]+'?([^\s()'"]+)`), minor: true},
			{heads: "(", re: re(`(?i)^\(def[\w-]*[ \t]+['(]*([^\s()'"]+)`)},
		}, imports: re(`^\(require[ \t]+'([^\s()]+)`), heads: "("},
		"Scheme": {suffixes: "scm ss sld sps sls guile", syntax: lispSyntax, flat: true, rules: []rule{
			{heads: "(", re: re(`^\((?:define[\w*+!/-]*|define-module|library)[ \t]+\(*([^\s()'"]+)`)},
		}, imports: re(`^\(?#?:?use-modules?[ \t]+\(+([^)]+)\)`), heads: "( #"},
		"Clojure": {suffixes: "clj cljs cljc edn", syntax: newSyntax(token{lineComment, ";", ""}, token{escape, `\`, ""}, token{longQuoted, `"`, `"`}), flat: true, rules: []rule{
			{heads: "(", re: re(`^\((?:defn-?|defmacro|defmulti|defmethod|defprotocol|defrecord|deftype|definterface|ns)[ \t]+(?:\^\S+[ \t]+)*([^\s()\[\]{}"]+)`)},
			{heads: "(", re: re(`^\(def(?:once)?[ \t]+(?:\^\S+[ \t]+)*([^\s()\[\]{}"]+)`), minor: true},
		}, imports: re(`[\[(](?:require[ \t]+['\[]*)?([a-z][\w-]*(?:\.[\w-]+)+)`)},
	}
}
