#!/bin/sh
# software: hand-made descriptions of PC software in several formats (D-4)
#
# One archive describes its packages in Linux Software Maps, another in IAFA
# templates, a third has nothing but a list of file names. The descriptions here
# are those of Debian's packages that are installed, in LSM, and three in IAFA.
# "batch programming language" finds the program rap, which no list of names does:
# there it is found by whoever knows already that it is called rap.
. "$(dirname "$0")/demo.sh"
mkdir "$work/lsm" "$work/iafa" "$work/index"
need /usr/bin/dpkg-query dpkg
dpkg-query -W -f '${Package}\t${Version}\t${binary:Summary}\n' | head -n 300 | while IFS='	' read -r name version about; do
	printf 'Begin4\nTitle:\t\t%s\nVersion:\t%s\nDescription:\t%s\nKeywords:\t%s\nEnd\n' "$name" "$version" "$about" "$name" >"$work/lsm/$name.lsm"
done
cat >"$work/lsm/rap.lsm" <<E
Begin4
Title:		rap
Version:	1.2
Description:	A small programming language for work that is done in
		batch, with files, menus and windows.
Keywords:	language, interpreter, batch
Primary-site:	ftp.example.org /pub/msdos/lang
		60K rap12.zip
End
E
cat >"$work/iafa/calc.iafa" <<E
Template-Type:	SOFTWARE
Title:	Sheet
Description:	A spreadsheet with a language for formulas
Keywords:	spreadsheet
E
cat >"$work/iafa/terminal.iafa" <<E
Template-Type:	SOFTWARE
Title:	Term
Description:	A terminal with Kermit and Zmodem, scripted in a language of its own
Keywords:	terminal
E
printf '%s\n' pub/msdos/lang/rap12.zip pub/msdos/calc/sheet3.zip pub/msdos/comm/term.zip pub/linux/editors/ed.tar.gz >"$work/index/00-INDEX.txt"
begin
gather lsm "root url=file://$work/lsm/ urls=1000"
gather iafa "root url=file://$work/iafa/"
gather index "root url=file://$work/index/" 'fulltext=yes'
broker software 'source path=gather/lsm' 'source path=gather/iafa'
broker names 'source path=gather/index'
echo "descriptions: $(figure broker/software/status objects)"
harvest query software 'batch programming language' | head -n 3 | cut -f 1,2,4,6
check 'what "batch programming language" finds first' "$(harvest query software 'batch programming language' | head -n 1 | cut -f 6)" rap
check 'what the list of names has for it' "$(figure broker/names/q/'batch programming language'/status hits)" 0
check 'what the list of names has for rap12' "$(figure broker/names/q/rap12/status hits)" 1
check 'fields of either format by one name' "$(harvest query software 'keywords : terminal' | cut -f 6 | grep -v :)" Term
check 'version by its field' "$(harvest query software 'title = rap and version = 1.2' | cut -f 6 | sort -u)" rap
