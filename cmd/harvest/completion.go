package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

func completionCommand() command {
	return command{"completion", "bash|zsh|fish", "print a completion script for a shell", func(*pflag.FlagSet) func(context.Context, []string, std) error {
		return func(_ context.Context, args []string, std std) error {
			if len(args) != 1 {
				return usagef("name one shell")
			}
			switch args[0] {
			case "bash":
				return bashCompletion(std.out)
			case "zsh":
				fmt.Fprintln(std.out, "#compdef harvest\nautoload -U +X bashcompinit && bashcompinit")
				return bashCompletion(std.out)
			case "fish":
				return fishCompletion(std.out)
			}
			return usagef("%s: unknown shell", args[0])
		}
	}}
}

// treePaths are the commands whose arguments are paths of the tree, which the
// shell asks a running server for.
const treePaths = "ls|cat|stat|write|mkdir|rm|watch"

// flagWords are the flags of a command as they are typed.
func (c command) flagWords() []string {
	if c.setup == nil {
		return nil
	}
	var words []string
	fl, _ := c.flags()
	fl.VisitAll(func(f *pflag.Flag) {
		words = append(words, "--"+f.Name)
		if f.Shorthand != "" {
			words = append(words, "-"+f.Shorthand)
		}
	})
	return words
}

func bashCompletion(w io.Writer) error {
	var names []string
	var flags strings.Builder
	for _, c := range commands() {
		names = append(names, c.name)
		if f := c.flagWords(); f != nil {
			fmt.Fprintf(&flags, "\t%s) flags='%s' ;;\n", c.name, strings.Join(f, " "))
		}
	}
	_, err := fmt.Fprintf(w, `# The names of a tree are anybody's: compgen -W would expand what is in them.
_harvest_names() {
	local name
	while IFS= read -r name; do
		case $2$name in "$1"*) COMPREPLY+=("$(printf '%%q' "$2$name")") ;; esac
	done
}
_harvest() {
	local cur=${COMP_WORDS[COMP_CWORD]} cmd=${COMP_WORDS[1]} flags= dir
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W '%s' -- "$cur"))
		return
	fi
	case $cmd in
%s	esac
	case $cur in
	-*)
		COMPREPLY=($(compgen -W "$flags" -- "$cur"))
		return ;;
	esac
	case $cmd in
	%s)
		dir=
		case $cur in */*) dir=${cur%%/*}/ ;; esac
		_harvest_names "$cur" "$dir" < <(harvest ls -- "$dir" 2>/dev/null)
		compopt -o nospace 2>/dev/null ;;
	query)
		_harvest_names "$cur" '' < <(harvest ls broker 2>/dev/null | tr -d /) ;;
	completion)
		COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")) ;;
	soif)
		[ "$COMP_CWORD" -eq 2 ] && COMPREPLY=($(compgen -W 'check fmt split wrap schema' -- "$cur")) || COMPREPLY=($(compgen -f -- "$cur")) ;;
	*)
		COMPREPLY=($(compgen -f -- "$cur")) ;;
	esac
}
complete -F _harvest harvest
`, strings.Join(names, " "), flags.String(), treePaths)
	return err
}

func fishCompletion(w io.Writer) error {
	var b strings.Builder
	b.WriteString("complete -c harvest -f\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "complete -c harvest -n __fish_use_subcommand -a %s -d '%s'\n", c.name, strings.ReplaceAll(c.about, "'", `\'`))
		if c.setup == nil {
			continue
		}
		fl, _ := c.flags()
		fl.VisitAll(func(f *pflag.Flag) {
			short := ""
			if f.Shorthand != "" {
				short = " -s " + f.Shorthand
			}
			fmt.Fprintf(&b, "complete -c harvest -n '__fish_seen_subcommand_from %s' -l %s%s -d '%s'\n", c.name, f.Name, short, strings.ReplaceAll(f.Usage, "'", `\'`))
		})
	}
	fmt.Fprintf(&b, "complete -c harvest -n '__fish_seen_subcommand_from %s' -a '(harvest ls (string replace -r \"[^/]*$\" \"\" -- (commandline -ct)) 2>/dev/null)'\n", strings.ReplaceAll(treePaths, "|", " "))
	b.WriteString("complete -c harvest -n '__fish_seen_subcommand_from try summarize soif' -F\n")
	_, err := io.WriteString(w, b.String())
	return err
}
