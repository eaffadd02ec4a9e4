#!/bin/sh
# reports: technical reports in ASCII, PostScript, DVI and HTML (D-2)
#
# The reports are those of groff: pic, me and the manual of man-db, as text, in
# PostScript, in HTML, and one set for DVI. What a report is about is found in what
# it says, which search in titles and abstracts misses; and the summaries that
# this takes are a fraction of the reports.
. "$(dirname "$0")/demo.sh"
doc=/usr/share/doc/groff-base
for f in pic.ms.gz pic.ps.gz pic.txt.gz meintro.ps.gz meintro.txt.gz meref.ps.gz meref.txt.gz; do need $doc/$f groff-base; done
need /usr/share/doc/groff-base/html groff
for f in /usr/share/groff/*/font/devdvi/DESC; do need "$f" groff; done
mkdir "$work/reports"
for f in pic.ps pic.txt meintro.ps meintro.txt meref.ps meref.txt; do gzip -dc $doc/$f.gz >"$work/reports/$f"; done
cp $doc/html/*.html "$work/reports/"
gzip -dc $doc/pic.ms.gz | groff -p -t -ms -Tdvi >"$work/reports/pic.dvi" 2>/dev/null
begin
gather reports "root url=file://$work/reports/"
broker reports 'source path=gather/reports'
echo 'kinds of reports, and how many:'
harvest cat broker/reports/q/'*'/hits | cut -f 4 | sort | uniq -c

# Each format is read, and says the same of the same report.
check 'formats in which the report on pic speaks of splines' "$(first reports spline 20 | grep '^pic\.' | sort | tr '\n' ' ')" 'pic.dvi pic.html pic.ps pic.txt '
found=0 titles=0
for q in spline linewid footnote 'multiple columns' arrowhead; do
	found=$((found + $(figure "broker/reports/q/$q and */status" hits)))
	titles=$((titles + $(figure "broker/reports/q/title : ($q) or abstract : ($q)/status" hits)))
done
echo "five questions: $found answers from what is in reports, $titles from titles and abstracts"
holds 'answers from titles and abstracts, and from content' "$((titles * 3))" -lt "$found"

raw=$(cat "$work"/reports/* | wc -c)
sum=$(harvest cat gather/reports/soif | wc -c)
packed=$(harvest cat gather/reports/soif.zst | wc -c)
echo "bytes: $raw of reports, $sum of summaries, $packed packed: 1/$((raw / packed))"
holds 'bytes of packed summaries times four, and of reports' "$((packed * 4))" -lt "$raw"
