package page

// Default is the template of a Broker that was given none. It shows all there is
// to show, without script, in the order in which it is read aloud.
const Default = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{with .Query}}{{.}} - {{end}}{{.Broker}}</title>
<style>
body { max-width: 45em; margin: 1em auto; padding: 0 1em; line-height: 1.4 }
li { margin-bottom: 1em }
cite, p.address { font-style: normal; overflow-wrap: anywhere }
p { margin: .2em 0 }
</style>
</head>
<body>
<main>
{{template "header" .}}
{{if .Failure}}{{template "failure" .}}{{else}}
{{if .Hits}}<ol start="{{.First}}">
{{range .Hits}}{{template "object" .}}{{end}}</ol>
{{end}}{{if .Truncated}}{{template "truncated" .}}{{end}}{{end}}
</main>
{{template "trailer" .}}
</body>
</html>
{{define "header"}}<h1>{{.Broker}}</h1>
{{with .Query}}<p>Asked: <kbd>{{.}}</kbd></p>
{{end}}{{if not .Failure}}<p role="status">{{if .Hits}}Objects {{.First}} to {{.Last}} of {{if .More}}at least {{end}}{{.Total}}{{else}}Nothing was found.{{end}}</p>
{{end}}{{end}}
{{define "object"}}<li>
<h2><a href="{{.Link}}">{{or .Title .URL}}</a></h2>
<p class="address">{{.URL}}</p>
{{with .Description}}<p>{{.}}</p>
{{end}}{{if .Lines}}<ul>
{{range .Lines}}<li>{{template "line" .}}</li>
{{end}}</ul>
{{end}}<p>{{.Percent}} %, {{.Type}}, <time datetime="{{date "2006-01-02T15:04:05Z" .Updated}}">{{date "2 January 2006" .Updated}}</time>, <a href="{{.File}}">summary</a></p>
</li>
{{end}}
{{define "line"}}<cite>{{.Attr}}</cite>: {{range .Parts}}{{if .Match}}<mark>{{.Text}}</mark>{{else}}{{.Text}}{{end}}{{end}}{{end}}
{{define "truncated"}}<p><strong>These are not all: more is left than is shown here.</strong></p>
{{end}}
{{define "failure"}}<p role="alert"><strong>There is no answer:</strong> {{.Failure}}</p>
{{end}}
{{define "trailer"}}<footer><p>{{date "2 January 2006, 15:04 UTC" .Time}}{{with .Cut}}; cut off by the limit on {{.}}{{end}}</p></footer>
{{end}}`
