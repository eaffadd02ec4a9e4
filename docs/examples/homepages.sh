#!/bin/sh
# homepages: home pages instead of whole sites (D-5)
#
# Each chapter of a handbook is a site with a home page and more. A Gatherer that
# takes the home pages alone, their text, what they link to and what their links
# say, answers what such a Broker is asked, where is something about X, and moves
# a fraction of the bytes of a visit of every page.
. "$(dirname "$0")/demo.sh"
need /usr/share/doc/python3.11/html/library/index.html python3-doc
mkdir "$work/www"
for chapter in library tutorial howto reference faq using extending c-api installing distributing; do
	[ -d "/usr/share/doc/python3.11/html/$chapter" ] || continue
	cp -rL "/usr/share/doc/python3.11/html/$chapter" "$work/www/$chapter"
done
# A hundred pages of the largest are enough to see it.
ls "$work/www/library" | tail -n +100 | while read -r f; do [ "$f" = index.html ] || rm "$work/www/library/$f"; done
begin
web "$work/www"
chapters=$(cd "$work/www" && ls)
gather home "$(for c in $chapters; do echo "leaf url=$site/$c/index.html"; done)"
broker home 'source path=gather/home'
home=$(awk '{ n += $1 } END { print n }' "$work/access")
pages=$(wc -l <"$work/access")
: >"$work/access"
gather whole "$(for c in $chapters; do echo "root url=$site/$c/index.html delay=0s urls=1000 force=yes"; done)"
whole=$(awk '{ n += $1 } END { print n }' "$work/access")
echo "home pages: $home bytes in $pages requests; every page: $whole bytes in $(wc -l <"$work/access") requests: 1/$((whole / home))"
holds 'bytes of home pages times four, and of every page' "$((home * 4))" -lt "$whole"
echo "summaries of the home pages: $(harvest cat gather/home/soif.zst | wc -c) bytes, packed"

# What is two clicks away is found by what the link to it says, and where it leads.
check 'the chapter on sockets' "$(harvest query home 'socket' | cut -f 5 | sed "s,$site/,," | grep -x 'howto/index.html')" howto/index.html
check 'who links to the page on sockets' "$(harvest query home 'url-references : "sockets.html"' | cut -f 5 | sed "s,$site/,,")" howto/index.html
check 'the tutorial by its title' "$(harvest query home 'title : tutorial' | head -n 1 | cut -f 5 | sed "s,$site/,,")" tutorial/index.html
