package essence

import (
	"maps"
	"sync"
)

// languages are the kinds of source code, by type.
var languages = sync.OnceValue(func() map[string]*language {
	m := make(map[string]*language)
	for _, family := range []map[string]*language{cLanguages(), braceLanguages(), scriptLanguages(), lispLanguages(), otherLanguages()} {
		maps.Copy(m, family)
	}
	for _, l := range m {
		l.prepare()
	}
	return m
})

// Syntaxes that several languages share.
var (
	cSyntax = newSyntax(token{lineComment, "//", ""}, token{blockComment, "/*", "*/"},
		token{quoted, `"`, `"`}, token{quoted, "'", "'"}, token{escape, `\`, ""})
	cppSyntax = newSyntax(token{lineComment, "//", ""}, token{blockComment, "/*", "*/"},
		token{rawCpp, `R"`, ""}, token{quoted, `"`, `"`}, token{charQuoted, "'", ""})
	javaSyntax = newSyntax(token{lineComment, "//", ""}, token{blockComment, "/*", "*/"},
		token{longQuoted, `"""`, `"""`}, token{quoted, `"`, `"`}, token{charQuoted, "'", ""})
	csharpSyntax = newSyntax(token{lineComment, "//", ""}, token{blockComment, "/*", "*/"}, token{startComment, "#region", ""}, token{startComment, "#endregion", ""},
		token{rawQuoted, `@"`, `"`}, token{longQuoted, `"""`, `"""`}, token{quoted, `"`, `"`}, token{charQuoted, "'", ""})
	nestSyntax = newSyntax(token{lineComment, "//", ""}, token{nestComment, "/*", "*/"},
		token{longQuoted, `"""`, `"""`}, token{quoted, `"`, `"`}, token{charQuoted, "'", ""})
	goSyntax = newSyntax(token{lineComment, "//", ""}, token{blockComment, "/*", "*/"},
		token{quoted, `"`, `"`}, token{charQuoted, "'", ""}, token{rawQuoted, "`", "`"})
	rustSyntax = newSyntax(token{lineComment, "//", ""}, token{nestComment, "/*", "*/"},
		token{rawRust, "r#", ""}, token{rawRust, `r"`, ""}, token{longQuoted, `"`, `"`}, token{charQuoted, "'", ""})
	jsSyntax = newSyntax(token{lineComment, "//", ""}, token{blockComment, "/*", "*/"}, token{slashRegexp, "/", ""},
		token{keyQuoted, `"`, `"`}, token{keyQuoted, "'", "'"}, token{template, "`", "`"})
	hashSyntax = newSyntax(token{lineComment, "#", ""}, token{quoted, `"`, `"`}, token{quoted, "'", "'"})
	dashSyntax = newSyntax(token{lineComment, "--", ""}, token{quoted, `"`, `"`})
	adaSyntax  = newSyntax(token{lineComment, "--", ""}, token{charQuoted, "'", ""}, token{rawQuoted, `"`, `"`})
	lispSyntax = newSyntax(token{lineComment, ";", ""}, token{nestComment, "#|", "|#"}, token{escape, `?\`, ""}, token{escape, `#\`, ""}, token{longQuoted, `"`, `"`})
)

const cInclude = `^#[ \t]*(?:include|import)[ \t]*["<]([^">]+)[">]`

// cLanguages are those that source_c.go reads.
func cLanguages() map[string]*language {
	javaImport := re(`^(?:import|using)[ \t]+(?:static[ \t]+|global::)?([\w.*]+)[ \t]*;`)
	return map[string]*language{
		"C":         {suffixes: "c", syntax: cSyntax, scan: scanC, imports: re(cInclude), heads: "#"},
		"CHeader":   {suffixes: "h", syntax: cppSyntax, scan: scanHeader, imports: re(cInclude), heads: "#"},
		"CPlusPlus": {suffixes: "cc cpp cxx hpp hh hxx h++ c++ ino ipp tcc inl cu", syntax: cppSyntax, scan: scanCpp, imports: re(cInclude), heads: "#"},
		"Java":      {suffixes: "java", syntax: javaSyntax, scan: scanJava, imports: javaImport, heads: "import"},
		"CSharp":    {suffixes: "cs", syntax: csharpSyntax, scan: scanCSharp, imports: javaImport, heads: "using"},
	}
}

// braceLanguages are those with blocks in braces.
func braceLanguages() map[string]*language {
	const kotlinWords = "public private protected internal open override abstract final sealed data inline value annotation suspend tailrec operator infix external const lateinit inner companion enum expect actual noinline crossinline reified fun class interface object val var typealias package"
	const kotlinMods = `^(?:(?:public|private|protected|internal|open|override|abstract|final|sealed|data|inline|value|annotation|suspend|tailrec|operator|infix|external|const|lateinit|inner|companion|enum|expect|actual)[ \t]+)*`
	const scalaMods = `^(?:(?:private|protected|override|abstract|final|sealed|implicit|lazy|case|inline|opaque|transparent|open|given)(?:\[\w+\])?[ \t]+)*`
	const scalaWords = "private protected override abstract final sealed implicit lazy case inline opaque transparent open given def class trait object type val var package enum"
	const swiftMods = `^(?:(?:@\w+(?:\([^)]*\))?|public|private|fileprivate|internal|open|override|final|static|class|mutating|nonmutating|lazy|weak|unowned|required|convenience|dynamic|optional|indirect|prefix|postfix|infix)(?:\(\w+\))?[ \t]+)*`
	const rustVis = `^(?:pub(?:\([^)]*\))?[ \t]+)?`
	phpMods := `^(?:(?:public|private|protected|static|abstract|final|readonly)[ \t]+)*`
	return map[string]*language{
		"Go": {suffixes: "go", syntax: goSyntax, goesOn: "+-*/|&=.<>?", rules: []rule{
			{heads: "func", re: re(`^func[ \t]*(?:\([^()]*\)[ \t]*)?(\w+)`)},
			{heads: "package", re: re(`^package[ \t]+(\w+)`)},
			{heads: "type", re: re(`^type[ \t]+(\w+)(?:\[[^\]]*\])?[ \t]*=?[ \t]*struct[ \t]*\{`), opens: "fields"},
			{heads: "type", re: re(`^type[ \t]+(\w+)(?:\[.*\])?[ \t]*=?[ \t]*interface[ \t]*\{`), opens: "methods"},
			{heads: "type", re: re(`^type[ \t]+(\w+)(?:\[.*\])?.*\bstruct[ \t]*\{$`), opens: "fields"},
			{heads: "type", re: re(`^type[ \t]+(\w+)`)},
			{heads: "type", re: re(`^type[ \t]*\(`), opens: "(types"},
			{heads: "var const", re: re(`^(?:var|const)[ \t]+(\w+(?:[ \t]*,[ \t]*\w+)*).*\bstruct[ \t]*\{$`), opens: "fields", minor: true},
			{heads: "var const", re: re(`^(?:var|const)[ \t]+(\w+(?:[ \t]*,[ \t]*\w+)*)`), minor: true},
			{heads: "var const", re: re(`^(?:var|const)[ \t]*\(`), opens: "(values"},
			{heads: "import", re: re(`^import[ \t]*\(`), opens: "(imports"},
			{heads: "import", re: re(`^import[ \t]+(\w+)[ \t]*$`), minor: true},
			{in: "(imports", re: re(`^(\w+)[ \t]*$`), minor: true},
			{in: "(types", re: re(`^(\w+)(?:\[[^\]]*\])?[ \t]*=?[ \t]*struct[ \t]*\{`), opens: "fields"},
			{in: "(types", re: re(`^(\w+)(?:\[.*\])?[ \t]*=?[ \t]*interface[ \t]*\{`), opens: "methods"},
			{in: "(types", re: re(`^(\w+)(?:[ \t]|\[)`)},
			{in: "(values", re: re(`^(\w+(?:[ \t]*,[ \t]*\w+)*)`), minor: true},
			{in: "fields", re: re(`^(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]+.*\bstruct[ \t]*\{$`), opens: "fields", minor: true},
			{in: "fields", re: re(`^(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]+[\w*\[(<{]`), minor: true},
			{in: "fields", re: re(`^\*?(?:\w+\.)?(\w+)(?:\[.*\])?[ \t]*$`), minor: true},
			{in: "methods", re: re(`^(\w+)[ \t]*\(`), minor: true},
		}, imports: re(`^(?:import[ \t]+)?(?:[\w.]+[ \t]+)?"([\w./~-]+)"[ \t]*(?://.*)?$`)},
		"Rust": {suffixes: "rs", syntax: rustSyntax, rules: rustRules(rustVis),
			imports: re(`^(?:pub(?:\([^)]*\))?[ \t]+)?(?:use|extern crate)[ \t]+([\w:]+)`), heads: "use pub extern", nested: true},
		"JavaScript": {suffixes: "js mjs cjs jsx", syntax: jsSyntax, scan: scanJS,
			imports: re(`(?:\brequire[ \t]*\([ \t]*|\bfrom[ \t]*|^import[ \t]*\(?)["']([^"']+)["']`)},
		"TypeScript": {suffixes: "ts tsx mts cts", syntax: jsSyntax, scan: scanJS,
			imports: re(`(?:\brequire[ \t]*\([ \t]*|\bfrom[ \t]*|^import[ \t]*\(?)["']([^"']+)["']`)},
		"Kotlin": {suffixes: "kt kts", syntax: nestSyntax, nested: true, rules: []rule{
			{heads: kotlinWords, re: re(kotlinMods + `(?:class|interface|object|typealias)[ \t]+(\w+)`)},
			{heads: kotlinWords, re: re(kotlinMods + `fun[ \t]+(?:<[^>]*>[ \t]*)?(?:[\w.<>?, *]+\.)?(\w+|` + "`[^`]+`" + `)[ \t]*\(`), opens: "body"},
			{heads: kotlinWords, re: re(kotlinMods + `va[lr][ \t]+(?:<[^>]*>[ \t]*)?(?:[\w<>?]+\.)?(\w+)`), minor: true},
			{heads: "package", re: re(`^package[ \t]+([\w.]+)`)},
			{in: "body", heads: "fun class", re: re(`^(?:fun|class)[ \t]+(\w+)`)},
		}, imports: re(`^import[ \t]+([\w.*]+)`), heads: "import"},
		"Scala": {suffixes: "scala sc", syntax: nestSyntax, nested: true, rules: []rule{
			{heads: scalaWords, re: re(scalaMods + `(?:class|trait|object|type|enum)[ \t]+(\w+)`)},
			{heads: scalaWords, re: re(scalaMods + `def[ \t]+([\w$]+|[^\w\s(\[:]+)`)},
			{heads: scalaWords, re: re(scalaMods + `va[lr][ \t]+(\w+)`), minor: true},
			{heads: "package", re: re(`^package[ \t]+([\w.]+)`)},
		}, imports: re(`^import[ \t]+([\w.*{}, ]+)`), heads: "import"},
		"Groovy": {suffixes: "groovy gradle gvy", syntax: nestSyntax, nested: true, rules: []rule{
			{re: re(`^(?:(?:public|private|protected|static|final|abstract)[ \t]+)*(?:class|interface|trait|enum)[ \t]+(\w+)`)},
			{re: re(`^(?:(?:public|private|protected|static|final|abstract)[ \t]+)*(?:def|void|[A-Z][\w<>\[\]]*|int|boolean|long)[ \t]+(\w+)[ \t]*\([^)]*\)[ \t]*\{`)},
			{heads: "task", re: re(`^task[ \t]+(\w+)`)},
			{heads: "tasks", re: re(`^tasks\.\w+\(?["'](\w+)`)},
			{heads: "package", re: re(`^package[ \t]+([\w.]+)`)},
		}, imports: re(`^(?:import[ \t]+(?:static[ \t]+)?([\w.*]+)|(?:id|implementation|api|testImplementation|compile)[ \t(]+['"]([^'"]+))`)},
		"Swift": {suffixes: "swift", syntax: nestSyntax, nested: true, rules: []rule{
			{re: re(swiftMods + `(?:class|struct|protocol|extension|actor|typealias|associatedtype)[ \t]+([\w.]+)`)},
			{re: re(swiftMods + `enum[ \t]+(\w+)`), opens: "cases"},
			{re: re(swiftMods + `func[ \t]+(\w+|[^\w\s(<]+)`), opens: "body"},
			{re: re(swiftMods + `(?:var|let)[ \t]+(\w+)`), opens: "body", minor: true},
			{in: "cases", heads: "case indirect", re: re(`^(?:indirect[ \t]+)?case[ \t]+(\w+(?:[ \t]*,[ \t]*\w+)*)`), minor: true},
			{in: "cases", re: re(swiftMods + `func[ \t]+(\w+)`), opens: "body"},
			{in: "body", heads: "func", re: re(`^func[ \t]+(\w+)`)},
		}, imports: re(`^(?:@\w+[ \t]+)?import[ \t]+(?:\w+[ \t]+)?([\w.]+)`), heads: "import @"},
		"Dart": {suffixes: "dart", syntax: javaSyntax, scan: scanJava, imports: re(`^(?:import|export|part)[ \t]+["']([^"']+)`), heads: "import export part"},
		"D": {suffixes: "d di", syntax: newSyntax(token{lineComment, "//", ""}, token{blockComment, "/*", "*/"}, token{nestComment, "/+", "+/"},
			token{longQuoted, `"`, `"`}, token{charQuoted, "'", ""}, token{rawQuoted, "`", "`"}), scan: scanD,
			imports: re(`^(?:public[ \t]+|private[ \t]+|static[ \t]+)*import[ \t]+([\w., ]+)`), heads: "import public private static"},
		"Zig": {suffixes: "zig", syntax: newSyntax(token{lineComment, "//", ""}, token{lineComment, `\\`, ""}, token{quoted, `"`, `"`}, token{charQuoted, "'", ""}), nested: true, rules: []rule{
			{heads: "pub fn export inline extern", re: re(`^(?:pub[ \t]+)?(?:export[ \t]+|inline[ \t]+|extern[ \t]+)?fn[ \t]+(\w+)`), opens: "body"},
			{heads: "pub const var threadlocal export", re: re(`^(?:pub[ \t]+|export[ \t]+|threadlocal[ \t]+)*(?:const|var)[ \t]+(\w+)`)},
			{in: "body", re: re(`^\x00`)},
		}, imports: re(`@import\("([^"]+)"\)`)},
		"PHP": {suffixes: "php php3 php4 php5 phtml", syntax: newSyntax(token{lineComment, "//", ""}, token{blockComment, "/*", "*/"}, token{lineComment, "#", ""},
			token{heredoc, "<<<", ""}, token{longQuoted, `"`, `"`}, token{longQuoted, "'", "'"}), nested: true, rules: []rule{
			{heads: "class interface trait abstract final readonly enum", re: re(`^(?:(?:abstract|final|readonly)[ \t]+)*(?:class|interface|trait|enum)[ \t]+(\w+)`), opens: "class"},
			{heads: "function", re: re(`^function[ \t]+&?[ \t]*(\w+)`), opens: "body"},
			{heads: "namespace", re: re(`^namespace[ \t]+([\w\\]+)`)},
			{heads: "const", re: re(`^const[ \t]+(\w+)`), minor: true},
			{heads: "use", re: re(`^use[ \t]+(?:function[ \t]+|const[ \t]+)?[\w\\]+[ \t]+as[ \t]+(\w+)`), minor: true},
			{heads: "use", re: re(`^use[ \t]+(?:[\w\\]*\\)?(\w+)[ \t]*;`), minor: true},
			{heads: "$", re: re(`^\$(\w+)[ \t]*=`), minor: true},
			{in: "class", heads: "public private protected static abstract final function readonly", re: re(phpMods + `function[ \t]+&?[ \t]*(\w+)`), opens: "body"},
			{in: "class", heads: "public private protected static final const", re: re(phpMods + `const[ \t]+(?:\w+[ \t]+)?(\w+)`), minor: true},
			{in: "class", heads: "case", re: re(`^case[ \t]+(\w+)`), minor: true},
			{in: "class", heads: "public private protected static var readonly", re: re(`^(?:(?:public|private|protected|static|var|readonly)[ \t]+)+(?:\??[\w\\|]+[ \t]+)?\$(\w+)`), minor: true},
			{in: "body", heads: "function", re: re(`^function[ \t]+&?(\w+)`), opens: "body"},
			{in: "body", heads: "$", re: re(`^\$(\w+)[ \t]*=[^=]`), minor: true},
		}, imports: re(`^(?:use[ \t]+(?:function[ \t]+|const[ \t]+)?([\w\\]+)|(?:include|require)(?:_once)?[ \t(]+['"]([^'"]+))`), heads: "use include require include_once require_once"},
		"Protobuf": {suffixes: "proto", syntax: cSyntax, nested: true, rules: []rule{
			{heads: "message extend", re: re(`^(?:message|extend)[ \t]+([\w.]+)`), opens: "fields"},
			{heads: "service", re: re(`^service[ \t]+(\w+)`), opens: "service"},
			{heads: "enum", re: re(`^enum[ \t]+(\w+)`), opens: "cases"},
			{heads: "package", re: re(`^package[ \t]+([\w.]+)`)},
			{in: "service", heads: "rpc", re: re(`^rpc[ \t]+(\w+)`)},
			{in: "cases", re: re(`^(\w+)[ \t]*=`), minor: true},
			{in: "fields", heads: "message extend", re: re(`^(?:message|extend)[ \t]+([\w.]+)`), opens: "fields"},
			{in: "fields", heads: "enum", re: re(`^enum[ \t]+(\w+)`), opens: "cases"},
			{in: "fields", heads: "oneof", re: re(`^oneof[ \t]+(\w+)`), opens: "fields", minor: true},
			{in: "fields", re: re(`^(?:(?:optional|required|repeated)[ \t]+)?(?:map[ \t]*<[^>]*>|[\w.]+)[ \t]+(\w+)[ \t]*=`), minor: true},
		}, imports: re(`^import[ \t]+(?:public[ \t]+|weak[ \t]+)?"([^"]+)"`), heads: "import"},
		"ObjectiveC": {suffixes: "m mm", syntax: cSyntax, rules: []rule{
			{heads: "@", re: re(`^@(?:interface|implementation|protocol)[ \t]+(\w+)`)},
			{heads: "@", re: re(`^@property[^;]*?(\w+)[ \t]*;`), minor: true},
			{heads: "- +", re: re(`^[-+][ \t]*(?:\([^)]*\)+)?[ \t]*(\w+)`)},
			{heads: "#", re: re(`^#[ \t]*define[ \t]+(\w+)`)},
			{heads: "typedef", re: re(`^typedef[^;]*?(\w+)[ \t]*;`)},
			{re: re(`^[A-Za-z_][\w \t*]*?[ \t*](\w+)[ \t]*\([^;]*$`)},
		}, imports: re(cInclude), heads: "#"},
		"Awk": {suffixes: "awk gawk", syntax: hashSyntax, flat: true, rules: []rule{
			{heads: "function func", re: re(`^func(?:tion)?[ \t]+(\w+)`)},
		}, imports: re(`^@include[ \t]+"([^"]+)"`), heads: "@"},
	}
}

func rustRules(vis string) []rule {
	const fnMods = `(?:(?:default|async|unsafe|const|extern(?:[ \t]+"?\w*"?)?)[ \t]+)*`
	rules := []rule{
		{heads: "struct pub", re: re(vis + `struct[ \t]+(\w+)`), opens: "fields"},
		{heads: "union pub", re: re(vis + `union[ \t]+(\w+)`), opens: "fields"},
		{heads: "enum pub", re: re(vis + `enum[ \t]+(\w+)`), opens: "variants"},
		{heads: "fn pub async unsafe const extern default", re: re(vis + fnMods + `fn[ \t]+(?:r#)?(\w+)`)},
		{heads: "trait mod type pub unsafe auto", re: re(vis + `(?:unsafe[ \t]+|auto[ \t]+)*(?:trait|mod|type)[ \t]+(?:r#)?(\w+)`)},
		{heads: "const static pub", re: re(vis + `(?:const|static)[ \t]+(?:mut[ \t]+|ref[ \t]+)?(\w+)[ \t]*:`), minor: true},
		{heads: "macro_rules", re: re(`^macro_rules![ \t]*(\w+)`), opens: "macro"},
		{heads: "macro pub", re: re(vis + `macro[ \t]+(\w+)`), opens: "macro"},
		{heads: "impl unsafe default", re: re(`^(?:unsafe[ \t]+|default[ \t]+)*impl\b[ \t]*(?:<.*>[ \t]+|<[^>]*>[ \t]*)?(?:.*[ \t]for[ \t]+)?[&']*(?:mut[ \t]+)?(?:dyn[ \t]+)?(?:\w+::)*(\w+)`)},
		{in: "fields", re: re(vis + `(?:r#)?(\w+)[ \t]*:`), minor: true},
		{in: "variants", re: re(`^(\w+)[ \t]*(?:[,({=]|$)`), opens: "skip", minor: true},
		{in: "skip", re: re(`^\x00`)},
		{in: "macro", re: re(`^\x00`)},
	}
	return rules
}

// otherLanguages are those that stand alone.
func otherLanguages() map[string]*language {
	percent := newSyntax(token{lineComment, "%", ""}, token{quoted, `"`, `"`}, token{quoted, "'", "'"}, token{escape, "$", ""})
	pascal := newSyntax(token{lineComment, "//", ""}, token{blockComment, "{", "}"}, token{blockComment, "(*", "*)"}, token{rawQuoted, "'", "'"})
	const sqlCreate = `(?i)^create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:global[ \t]+|local[ \t]+|temp(?:orary)?[ \t]+|unique[ \t]+|materialized[ \t]+|recursive[ \t]+|unlogged[ \t]+|definer[ \t]*=[ \t]*\S+[ \t]+|external[ \t]+|trusted[ \t]+|constraint[ \t]+|bitmap[ \t]+|fulltext[ \t]+)*`
	const sqlName = "(?:[\"`\\[]?[\\w@$]+[\"`\\]]?[ \\t]*\\.[ \\t]*)*[\"`\\[]?([\\w$@]+)"
	ml := newSyntax(token{nestComment, "(*", "*)"}, token{longQuoted, `"`, `"`}, token{charQuoted, "'", ""})
	return map[string]*language{
		"Haskell": {suffixes: "hs lhs hsc", syntax: newSyntax(token{nestComment, "{-", "-}"}, token{lineComment, "--", ""}, token{quoted, `"`, `"`}), flat: true, rules: []rule{
			{heads: "data newtype type class", re: re(`^(?:data|newtype|type|class)[ \t]+(?:family[ \t]+|instance[ \t]+)?(?:.*=>[ \t]*)?([A-Z][\w']*)`)},
			{heads: "module", re: re(`^module[ \t]+([\w.]+)`)},
			{re: re(`^([a-z_][\w']*(?:[ \t]*,[ \t]*[a-z_][\w']*)*)[ \t]*::`)},
		}, imports: re(`^import[ \t]+(?:qualified[ \t]+|safe[ \t]+)*([\w.]+)`), heads: "import"},
		"OCaml": {suffixes: "ml mli mll mly", syntax: ml, flat: true, scan: scanOCaml, rules: []rule{
			{heads: "let and", re: re(`^(?:let|and)[ \t]+(?:rec[ \t]+|nonrec[ \t]+|inline[ \t]+)*(?:\([ \t]*([^\s)]+)[ \t]*\)|([a-zA-Z_][\w']*))`)},
			{heads: "val external", re: re(`^(?:val|external)[ \t]+(?:\([ \t]*([^\s)]+)[ \t]*\)|([\w']+))`)},
			{heads: "type and", re: re(`^(?:type|and)[ \t]+(?:nonrec[ \t]+)?(?:\([^)]*\)[ \t]*|[-+!]*'\w+[ \t]+)?(\w+)`)},
			{heads: "module exception class method", re: re(`^(?:module[ \t]+(?:rec[ \t]+|type[ \t]+)?|exception[ \t]+|class[ \t]+(?:virtual[ \t]+)?|method[ \t]+(?:private[ \t]+|virtual[ \t]+)*)([\w']+)`)},
			{heads: "|", re: re(`^\|[ \t]*([A-Z][\w']*)[ \t]*(?:of\b|$|:[^:=])`), minor: true},
		}, imports: re(`^(?:open|include)[ \t]+([\w.]+)`), heads: "open include"},
		"FSharp": {suffixes: "fs fsi fsx", syntax: ml, indent: true, rules: []rule{ // what a body binds is its own
			{re: re(`^(?:let|and)[ \t]+(?:rec[ \t]+|inline[ \t]+|private[ \t]+|internal[ \t]+|mutable[ \t]+)*(\w[\w']*)`), opens: "body"},
			{re: re(`^(?:type|module|namespace|exception)[ \t]+(?:rec[ \t]+|private[ \t]+|internal[ \t]+)*([\w.]+)`)},
			{re: re(`^(?:static[ \t]+|abstract[ \t]+|override[ \t]+|default[ \t]+)*member[ \t]+(?:inline[ \t]+)?(?:\w+\.)?(\w+)`), opens: "body"},
		}, imports: re(`^open[ \t]+([\w.]+)`), heads: "open"},
		"Pascal": {suffixes: "pas pp dpr lpr", syntax: pascal, flat: true, fold: true, rules: []rule{
			{heads: "procedure function constructor destructor class operator", re: re(`(?i)^(?:class[ \t]+)?(?:procedure|function|constructor|destructor|operator)[ \t]+((?:\w+(?:<[^>]*>)?\.)*\w+)`)},
			{heads: "unit program library", re: re(`(?i)^(?:unit|program|library)[ \t]+([\w.]+)[ \t]*[;(]`)},
			{re: re(`(?i)^(\w+)[ \t]*=[ \t]*(?:packed[ \t]+)?(?:class|record|object|interface|set[ \t]+of|array|\()`)},
		}, imports: re(`(?i)^uses[ \t]+([\w., ]+)`), heads: ""},
		"Ada": {suffixes: "ada adb ads", syntax: adaSyntax, scan: scanAda, fold: true, rules: []rule{
			{heads: "procedure function overriding not generic with", re: re(`(?i)^(?:(?:generic|not|overriding|with)[ \t]+)*(?:procedure|function)[ \t]+("[^"]+"|[\w.]+)`)},
			{heads: "package private generic", re: re(`(?i)^(?:(?:private|generic)[ \t]+)*package[ \t]+(?:body[ \t]+)?([\w.]+)`)},
			{heads: "separate", re: re(`(?i)^separate[ \t]*\([ \t]*([\w.]+)`)},
			{heads: "type subtype task protected entry", re: re(`(?i)^(?:type|subtype|entry|(?:task|protected)[ \t]+(?:type[ \t]+|body[ \t]+)?)[ \t]*(\w+)(?:[ \t]*\([ \t]*(\w+)[ \t]*:)?`)},
			{re: re(`(?i)^(\w+(?:[ \t]*,[ \t]*\w+)*,?)[ \t]*:(?:[^=]|$)`), minor: true},
		}, imports: re(`(?i)^(?:private[ \t]+|limited[ \t]+)?with[ \t]+([\w., ]+)`)},
		"Fortran": {suffixes: "f f77 f90 f95 f03 f08 for ftn", syntax: newSyntax(token{lineComment, "!", ""}, token{startComment, "C", ""}, token{startComment, "c", ""}, token{startComment, "*", ""}, token{quoted, "'", "'"}, token{quoted, `"`, `"`}), flat: true, fold: true, rules: []rule{
			{re: re(`(?i)^(?:(?:pure|elemental|recursive|impure|module|integer|real|logical|complex|character|double[ \t]+precision|type)(?:[ \t]*\([^)]*\)|\*\d+)?[ \t]+)*(?:subroutine|function)[ \t]+(\w+)`)},
			{heads: "program module submodule", re: re(`(?i)^(?:program|module|submodule[ \t]*\([^)]*\))[ \t]+(\w+)[ \t]*$`)},
			{heads: "type", re: re(`(?i)^type[ \t]*(?:,[^:]*)?(?:::)?[ \t]*(\w+)[ \t]*$`)},
			{heads: "interface block entry", re: re(`(?i)^(?:interface|block[ \t]*data|entry)[ \t]+(\w+)`)},
		}, imports: re(`(?i)^(?:use[ \t]+(?:,[ \t]*intrinsic[ \t]*::)?[ \t]*(\w+)|include[ \t]+'([^']+))`)},
		"R": {suffixes: "r rscript", syntax: hashSyntax, rules: []rule{
			{re: re(`^([\w.]+|` + "`[^`]+`" + `)[ \t]*(?:<<?-|=)[ \t]*function\b`)},
			{heads: "setGeneric setMethod setClass setRefClass", re: re(`^set(?:Generic|Method|Class|RefClass)\([ \t]*["']([^"']+)`)},
			{re: re(`^([\w.]+)[ \t]*<<?-`), minor: true},
		}, imports: re(`^(?:library|require)\([ \t]*["']?([\w.]+)`), heads: "library require"},
		"Julia": {suffixes: "jl", syntax: newSyntax(token{nestComment, "#=", "=#"}, token{lineComment, "#", ""}, token{docQuoted, `"""`, `"""`}, token{quoted, `"`, `"`}, token{charQuoted, "'", ""}), rules: []rule{
			{heads: "function macro", re: re(`^(?:function|macro)[ \t]+(?:[\w.]+\.)?(\w+!?|[^\w\s(]+)[ \t]*(?:[({]|$)`)},
			{heads: "struct mutable abstract primitive module baremodule", re: re(`^(?:(?:mutable[ \t]+)?struct|abstract[ \t]+type|primitive[ \t]+type|module|baremodule)[ \t]+(\w+)`)},
			{heads: "const global", re: re(`^(?:const|global)[ \t]+(\w+)`), minor: true},
			{re: re(`^(?:@\w+[ \t]+)*(?:function[ \t]+)?(?:\w+\.)*(\w+!?)(?:\{[^}]*\})?\([^=]*\)(?:[ \t]*where[ \t]+\S+|::\w+)*[ \t]*=[^=]`)},
		}, imports: re(`^(?:using|import)[ \t]+([\w., :]+)`), heads: "using import"},
		"Erlang": {suffixes: "erl hrl", syntax: percent, flat: true, rules: []rule{
			{heads: "-", re: re(`^-[ \t]*(?:module|record|define|type|opaque)[ \t]*\(?[ \t]*'?([\w@]+)'?`)},
			{re: re(`^([a-z][\w@]*)[ \t]*\(`)},
		}, imports: re(`^-(?:include|include_lib)\("([^"]+)"\)`), heads: "-"},
		"Elixir": {suffixes: "ex exs", syntax: newSyntax(token{lineComment, "#", ""}, token{docQuoted, `"""`, `"""`}, token{quoted, `"`, `"`}), flat: true, rules: []rule{
			{heads: "defmodule defprotocol defimpl", re: re(`^def(?:module|protocol|impl)[ \t]+([\w.]+)`)},
			{heads: "def defp defmacro defmacrop defguard defguardp defdelegate defcallback", re: re(`^def(?:p|macrop?|guardp?|delegate|callback)?[ \t]+([\w?!]+)`)},
			{heads: "@", re: re(`^@(?:type|typep|opaque|callback|macrocallback)[ \t]+(\w+)`)},
			{heads: "test", re: re(`^test[ \t]+"([^"]+)"`), minor: true},
		}, imports: re(`^(?:import|alias|use|require)[ \t]+([\w.]+)`), heads: "import alias use require"},
		"Prolog": {suffixes: "pro prolog", syntax: newSyntax(token{lineComment, "%", ""}, token{blockComment, "/*", "*/"}), flat: true, rules: []rule{
			{re: re(`^([a-z]\w*)[ \t]*(?:\(.*(?::-|-->|\.$)|:-)`)},
		}, imports: re(`^:-[ \t]*(?:use_module|consult)\(([^),]+)`)},
		"SQL": {suffixes: "sql ddl", syntax: newSyntax(token{lineComment, "--", ""}, token{blockComment, "/*", "*/"}, token{rawQuoted, "'", "'"}), fold: true, rules: []rule{
			{heads: "create", re: re(sqlCreate + `(?:temp(?:orary)?[ \t]+)?table[ \t]+(?:if[ \t]+not[ \t]+exists[ \t]+)?` + sqlName + `[ \t]*(?:\([ \t]*(?:(\w+)[ \t]+\w.*)?)?$`), opens: "(columns"},
			{heads: "create", re: re(sqlCreate + `(?:table|view|function|procedure|trigger|index|sequence|type|domain|aggregate|operator|extension|schema|database|package|event|cast|role|user|publication|service)[ \t]+(?:body[ \t]+)?(?:concurrently[ \t]+)?(?:if[ \t]+not[ \t]+exists[ \t]+)?` + sqlName)},
			{in: "(columns", re: re(`(?i)^,?[ \t]*(?:primary|foreign|unique|constraint|check|key|index|exclude|like)\b`)},
			{in: "(columns", re: re("^,?[ \\t]*[\"`\\[]?(\\w+)[\"`\\]]?[ \\t]+[\\w\"]"), minor: true},
		}},
		"VHDL": {suffixes: "vhd vhdl", syntax: dashSyntax, flat: true, fold: true, rules: []rule{
			{re: re(`(?i)^(?:entity|architecture|package(?:[ \t]+body)?|component|function|procedure|type|subtype|constant|signal)[ \t]+(\w+)`)},
		}, imports: re(`(?i)^use[ \t]+([\w.]+)`)},
		"Verilog": {suffixes: "v sv svh vh", syntax: cSyntax, flat: true, rules: []rule{
			{heads: "module macromodule interface class package function task program", re: re(`^(?:module|macromodule|interface|class|package|program|(?:function|task)(?:[ \t]+automatic)?(?:[ \t]+(?:\[[^\]]*\]|\w+))*?)[ \t]+(\w+)[ \t]*[;(#]`)},
			{heads: "parameter localparam", re: re(`^(?:parameter|localparam)[ \t]+(?:\[[^\]]*\][ \t]*)?(\w+)`), minor: true},
		}, imports: re("^`include[ \t]+\"([^\"]+)"), heads: "`"},
		"Nim": {suffixes: "nim nims", syntax: newSyntax(token{nestComment, "#[", "]#"}, token{lineComment, "#", ""}, token{longQuoted, `"""`, `"""`}, token{quoted, `"`, `"`}), flat: true, rules: []rule{
			{heads: "proc func method template macro iterator converter", re: re(`^(?:proc|func|method|template|macro|iterator|converter)[ \t]+(\w+|` + "`[^`]+`" + `)`)},
			{heads: "type const var let", re: re(`^(?:type|const|var|let)[ \t]+(\w+)`)},
			{re: re(`^(\w+)\*?(?:\[[^\]]*\])?[ \t]*(?:\{[^}]*\})?[ \t]*=[ \t]*(?:ref[ \t]+|ptr[ \t]+)?(?:object|enum|tuple|distinct|concept)\b`)},
		}, imports: re(`^(?:import|include|from)[ \t]+([\w./, ]+)`), heads: "import include from"},
		"VisualBasic": {suffixes: "vb vbs bas frm", syntax: newSyntax(token{lineComment, "'", ""}, token{rawQuoted, `"`, `"`}), flat: true, fold: true, rules: []rule{
			{re: re(`(?i)^(?:(?:public|private|protected|friend|static|shared|overrides|overridable|partial|default|readonly|notinheritable|mustinherit)[ \t]+)*(?:sub|function|class|module|structure|enum|interface|type|property(?:[ \t]+(?:get|let|set))?)[ \t]+(\w+)`)},
			{heads: "const public private dim", re: re(`(?i)^(?:(?:public|private)[ \t]+)?const[ \t]+(\w+)`), minor: true},
		}, imports: re(`(?i)^imports[ \t]+([\w.]+)`)},
		"Assembly": {suffixes: "s asm", syntax: newSyntax(token{blockComment, "/*", "*/"}, token{lineComment, "//", ""}, token{wordComment, ";", ""}, token{startComment, "#", ""}, token{quoted, `"`, `"`}), flat: true, rules: []rule{
			{re: re(`^([A-Za-z_.$][\w.$@]*):`)},
			{heads: "TEXT GLOBL DATA", re: re(`^(?:TEXT|GLOBL|DATA)[ \t]+([\w·∕./]+)`)},
			{heads: "ENTRY SYM_FUNC_START SYM_CODE_START SYM_FUNC_START_LOCAL SYM_DATA SYM_DATA_START GLOBAL WEAK", re: re(`^\w+\([ \t]*([\w.$]+)`)},
			{heads: ".", re: re(`^\.(?:macro|set|equ)[ \t]+([\w.$]+)`)},
			{re: re(`^(\w+)[ \t]+(?:proc|macro|struct|equ)\b`)},
		}, imports: re(`^(?:#[ \t]*|\.|%)include[ \t]+["<]([^">]+)`)},
		"M4": {suffixes: "m4 ac", syntax: newSyntax(token{wordComment, "dnl", ""}, token{wordComment, "#", ""}), flat: true, rules: []rule{
			{re: re(`^(?:m4_)?(?:define|AC_DEFUN(?:_ONCE)?|AU_DEFUN|AU_ALIAS|m4_defun)\(\[?` + "`?" + `([\w.$]+)`)},
			{heads: "AC_SUBST AC_ARG_ENABLE AC_ARG_WITH", re: re(`^AC_\w+\(\[?([\w-]+)`), minor: true},
		}, imports: re(`^(?:m4_include|sinclude|include)\(\[?([\w./-]+)`)},
		"Yacc": {suffixes: "y yy", syntax: cSyntax, flat: true, rules: []rule{
			{heads: "%", re: re(`^%(?:token|type|left|right|nonassoc)[ \t]+(?:<\w+>[ \t]*)?(\w+)`), minor: true},
			{re: re(`^([A-Za-z_]\w*)[ \t]*(?:\[\w+\][ \t]*)?:(?:[^:=]|$)`)},
			{re: re(`^([A-Za-z_]\w*)$`)},
		}, imports: re(cInclude), heads: "#"},
		"Lex": {suffixes: "l ll", syntax: newSyntax(token{blockComment, "/*", "*/"}), flat: true, rules: []rule{
			{heads: "%", re: re(`^%[xsXS][ \t]+(\w+)`)},
			{re: re(`^([A-Z_][A-Z_0-9]*)[ \t]+\S`)},
		}, imports: re(cInclude), heads: "#"},
	}
}
