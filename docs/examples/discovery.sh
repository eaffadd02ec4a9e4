#!/bin/sh
# discovery: a Broker of one topic, made of two other Brokers (D-1)
#
# A site has manual pages. Two Gatherers visit it, one for the programs of the
# net, one for all; each has a Broker. A third Broker takes from both what is
# about finding information. That costs the site nothing: its server sees no
# request. And where "approximate" finds all sorts of things among all manual
# pages, among those of the topic it finds agrep.
. "$(dirname "$0")/demo.sh"
agrep=
for f in /usr/share/man/man1/agrep.1.gz /usr/share/man/man1/tre-agrep.1.gz; do [ -e $f ] && agrep=$f; done
[ -n "$agrep" ] || need /usr/share/man/man1/tre-agrep.1.gz tre-agrep
mkdir -p "$work/www/net" "$work/www/all"
for p in rsync wget curl ssh scp sftp ftp lynx git-fetch git-clone; do
	[ ! -e "/usr/share/man/man1/$p.1.gz" ] || gzip -dc "/usr/share/man/man1/$p.1.gz" >"$work/www/net/$p.1"
done
gzip -dc $agrep >"$work/www/all/agrep.1"
for p in grep find xargs sort uniq join comm cut sed awk mawk tr diff diff3 cmp ls cp mv ln du df date sleep timeout seq shuf \
	nice nohup head tail split csplit fmt fold pr nl od tsort perlre perlop perlfunc bash dash ed top ps vmstat bc dc factor zstd xz gzip tar cpio make; do
	[ ! -e "/usr/share/man/man1/$p.1.gz" ] || gzip -dc "/usr/share/man/man1/$p.1.gz" >"$work/www/all/$p.1"
done
cat >"$work/www/all/weather.1" <<E
.TH weather 1
.SH NAME
weather \- print an approximate forecast
E
begin
web "$work/www"
gather net "root url=$site/net/ depth=1 delay=0s"
gather all "root url=$site/all/ depth=1 delay=0s" "fulltext=yes"
broker net 'source path=gather/net every=1h'
broker all 'source path=gather/all every=1h'
echo "gathered: $(figure broker/net/status objects) objects of the net, $(figure broker/all/status objects) of all"

asked=$(wc -l <"$work/access")
broker discovery \
	"source path=broker/net every=1h filter='title : (search* or find* or retriev* or transfer* or download*) or description : (search* or retriev* or download*)'" \
	"source path=broker/all every=1h filter='title : (search* or find* or retriev* or pattern* or grep) or description : (search* or retriev* or pattern*)'"
check 'requests that the provider saw for the third Broker' $(($(wc -l <"$work/access") - asked)) 0
echo "of the topic: $(figure broker/discovery/status objects)"
holds 'objects of the topic, and of all' "$(figure broker/discovery/status objects)" -lt "$(figure broker/all/status objects)"

check 'what "approximate" finds first among few' "$(first discovery approximate)" agrep.1
small=$(figure broker/discovery/q/approximate/status hits)
big=$(figure broker/all/q/approximate/status hits)
holds 'what "approximate" finds among few, and among all' "$small" -lt "$big"
check "whether the weather is among the few" "$(first discovery approximate 100 | grep weather || echo no)" no

# It follows by itself what the others have: a new page comes through both steps.
cat >"$work/www/all/locate.1" <<E
.TH locate 1
.SH NAME
locate \- search for files by approximate names
E
harvest write gather/all/ctl run && harvest watch gather/all >/dev/null
harvest write broker/all/ctl collect && harvest watch broker/all >/dev/null
asked=$(wc -l <"$work/access")
harvest write broker/discovery/ctl collect && harvest watch broker/discovery >/dev/null
check 'whether a new page is found in the third' "$(first discovery 'locate and approximate')" locate.1
check 'requests that the provider saw for it' $(($(wc -l <"$work/access") - asked)) 0
