#!/bin/sh
# series: documents that are found by the series of data they refer to (D-3)
#
# The series are the releases of Debian packages, by year, as their changelogs
# tell. Of the list of series a program makes a table of regular expressions, by
# which every summary is told which series it refers to, and rules that attach what
# the series is like. Users search the series: by name, and by numbers.
. "$(dirname "$0")/demo.sh"
mkdir "$work/papers"
n=0
for f in /usr/share/doc/*/changelog.Debian.gz; do
	[ -f "$f" ] || continue
	p=${f%/*}; p=${p##*/}
	# The series: a line a release, and its year.
	gzip -dc "$f" | sed -n 's/^ -- .*> *[A-Z][a-z][a-z], *[0-9]* [A-Z][a-z][a-z] \([0-9]\{4\}\) .*/\1/p' >"$work/years"
	[ -s "$work/years" ] || continue
	echo "$p $(wc -l <"$work/years") $(sort -n "$work/years" | head -n 1) $(sort -n "$work/years" | tail -n 1)" >>"$work/series"
	n=$((n + 1))
	[ $n -lt 60 ] || break
done
[ $n -gt 9 ] || need /usr/share/doc/PACKAGE/changelog.Debian.gz 'any ten'
# Each document is a copyright notice, which names programs and their sources.
while read -r p releases first last; do
	cp "/usr/share/doc/$p/copyright" "$work/papers/$p.txt" 2>/dev/null || :
	printf '\nOn the releases of package %s.\n' "$p" >>"$work/papers/$p.txt"
done <"$work/series"
begin
harvest mkdir gather/papers
# The generated tables: a regular expression a series, and what is known of it.
awk '{ re = $1; gsub(/[.+]/, "\\\\&", re); printf "Series=%s re=\"(?i)releases\\s+of\\s+package\\s+%s\\.\"\n", $1, re }' "$work/series" |
	tr '"' "'" >"$work/derive"
while read -r p releases first last; do
	printf "Series == '%s'\n\tReleases = \"%s\"\n\tFirst-Year = \"%s\"\n\tLast-Year = \"%s\"\n" "$p" "$releases" "$first" "$last"
done <"$work/series" >"$work/rules"
harvest write gather/papers/types/derive <"$work/derive"
harvest write gather/papers/types/rules <"$work/rules"
echo "generated: $(wc -l <"$work/derive") regular expressions"
gather papers "root url=file://$work/papers/" 'fulltext=yes'
broker papers 'source path=gather/papers'
check 'documents, all of which refer to a series' "$(figure broker/papers/q/'series : *'/status hits)" $n

# The answers are what the list of series says.
want() { awk "$1"' { print $1 ".txt" }' "$work/series" | sort | tr '\n' ' '; }
got() { harvest query papers "$1" | cut -f 5 | sed 's,.*/,,' | sort | tr '\n' ' '; }
check 'series of more than twenty releases' "$(got 'releases > 20')" "$(want '$2 > 20')"
check 'series that begin before 2010 and go on past 2020' "$(got 'first-year < 2010 and last-year > 2020')" "$(want '$3 < 2010 && $4 > 2020')"
check 'series of two to five releases' "$(got 'releases : 2..5')" "$(want '$2 >= 2 && $2 <= 5')"
one=$(sed -n '5s/ .*//p' "$work/series")
check "the series $one" "$(got "series = $one")" "$one.txt "
