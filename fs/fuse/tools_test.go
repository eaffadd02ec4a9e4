package fuse

import (
	"os/exec"
	"strings"
	"testing"
)

// TestTools runs what people run. Each line is a shell command that must
// succeed in the mount, and what it must print.
func TestTools(t *testing.T) {
	c := mount(t)
	for _, tt := range []struct{ name, need, script, want string }{
		{"ls", "", `ls`, "disk\nflat\nfolders\nhard\nmillion\nobjects\nsvc\n"},
		{"ls -a", "", `ls -a svc | head -3`, ".\n..\nconfig\n"},
		{"ls -l", "", `ls -l objects/00/00_0000000.soif | cut -c1-10`, "-r--r--r--\n"},
		{"ls -i", "", `test "$(ls -i objects/00/00_0000000.soif)" = "$(ls -i objects/00/00_0000000.soif)" && echo same`, "same\n"},
		{"cat", "", `cat svc/status`, "state=ready\nobjects=3\n"},
		{"cat made", "", `cat svc/made | wc -l`, "10000\n"},
		{"cat growing", "", `cat svc/events`, "record 0\nrecord 1\nrecord 2\n"},
		{"wc", "", `wc -c <svc/events; wc -c svc/status`, "27\n22 svc/status\n"},
		{"head and tail", "", `head -1 svc/events; tail -n 1 svc/events; tail -c 9 svc/events`, "record 0\nrecord 2\nrecord 2\n"},
		{"head of made", "", `head -2 svc/made`, "line 0\nline 1\n"},
		{"find", "", `find objects -name '*.soif' | wc -l`, "512\n"},
		{"find -size", "", `find objects -type f -size -3k | wc -l`, "512\n"},
		{"grep -r", "", `grep -rl 'Keyword-3{8}' objects | wc -l; grep -r nothing-like-it objects svc; test $? = 1`, "512\n"},
		{"du", "", `du -s --apparent-size objects | cut -f1`, "1024\n"},
		{"cp -r and diff -r", "", `cp -r objects $T/o && diff -r objects $T/o && find $T/o -type f | wc -l; chmod -R u+w $T`, "512\n"},
		{"cp of made", "", `cp svc/made $T/m && wc -l <$T/m`, "10000\n"},
		{"tar", "tar", `tar cf $T/o.tar objects && tar tf $T/o.tar | grep -c soif && tar df $T/o.tar`, "512\n"},
		{"rsync -a", "rsync", `rsync -a objects/ $T/r && rsync -aic objects/ $T/r | wc -l; chmod -R u+w $T`, "0\n"},
		{"rsync -aX out", "rsync", `rsync -aX objects/00 $T/x && ls $T/x/00 | wc -l; chmod -R u+w $T`, "2\n"},
		{"rsync -a in", "rsync", `mkdir $T/s && echo one >$T/s/a && echo two >$T/s/b && rsync -a $T/s/ disk/rs && cat disk/rs/a disk/rs/b && rsync -ai $T/s/ disk/rs`, "one\ntwo\n"},
		{"redirection", "", `echo one >disk/f && cat disk/f && echo two >>disk/f && cat disk/f && echo three >disk/f && cat disk/f`, "one\none\ntwo\nthree\n"},
		{"noclobber", "", `set -C; echo x >disk/clob && ! (echo y >disk/clob) 2>/dev/null && cat disk/clob`, "x\n"},
		{"cp -p", "", `printf old >$T/f; touch -d 2001-02-03 $T/f; chmod 640 $T/f; cp -p $T/f disk/p && stat -c '%a %Y' disk/p | sed "s/$(stat -c %Y $T/f)/same/"`, "640 same\n"},
		{"cp -p out", "", `cp -p disk/p $T/q && cmp disk/p $T/q && stat -c %a $T/q`, "640\n"},
		{"cp -a tree", "", `mkdir -p $T/d/e && echo deep >$T/d/e/f && cp -a $T/d disk/d && cat disk/d/e/f && rm -r disk/d && ! test -e disk/d`, "deep\n"},
		{"install", "", `echo prog >$T/i && install -m 755 $T/i disk/inst && install -m 755 $T/i disk/inst && stat -c %a disk/inst && cat disk/inst`, "755\nprog\n"},
		{"mv", "", `echo m >disk/m1 && mv disk/m1 disk/m2 && cat disk/m2 && echo n >disk/m3 && mv disk/m3 disk/m2 && cat disk/m2 && ! test -e disk/m3`, "m\nn\n"},
		{"mv -n", "", `echo a >disk/n1; echo b >disk/n2; mv -n disk/n1 disk/n2; cat disk/n1 disk/n2`, "a\nb\n"},
		{"mv across", "", `mkdir -p disk/sub && echo x >disk/ac && mv disk/ac disk/sub/ac && cat disk/sub/ac && ! test -e disk/ac`, "x\n"},
		{"mkdir and rmdir", "", `mkdir disk/dd && ! mkdir disk/dd 2>/dev/null && touch disk/dd/f && ! rmdir disk/dd 2>/dev/null && rm disk/dd/f && rmdir disk/dd && ! test -e disk/dd`, ""},
		{"rmdir says why", "", `mkdir disk/de && touch disk/de/f; rmdir disk/de 2>&1 | grep -o 'Directory not empty'`, "Directory not empty\n"},
		{"dd", "", `dd if=/dev/zero of=disk/dd bs=1000 count=150 2>/dev/null && wc -c <disk/dd && printf X | dd of=disk/dd bs=1 seek=999 conv=notrunc 2>/dev/null && dd if=disk/dd bs=1 skip=999 count=1 2>/dev/null`, "150000\nX"},
		{"truncate", "", `truncate -s 10 disk/t && stat -c %s disk/t && truncate -s 3 disk/t && stat -c %s disk/t && od -An -tx1 disk/t`, "10\n3\n 00 00 00\n"},
		{"touch", "", `touch disk/to && touch -d @1000000000 disk/to && stat -c %Y disk/to`, "1000000000\n"},
		{"chmod", "", `touch disk/ch && chmod 600 disk/ch && stat -c %a disk/ch`, "600\n"},
		{"chown to the same", "", `touch disk/ow && chown $(id -u):$(id -g) disk/ow && ! chown 12345 disk/ow 2>/dev/null`, ""},
		{"sed -i", "", `printf 'a\nb\n' >disk/sed && sed -i s/a/A/ disk/sed && cat disk/sed && sed -i.bak s/b/B/ disk/sed && cat disk/sed disk/sed.bak`, "A\nb\nA\nB\nA\nb\n"},
		{"perl -i", "perl", `printf 'a\nb\n' >disk/pl && perl -pi -e s/a/A/ disk/pl && cat disk/pl`, "A\nb\n"},
		{"ed", "ed", `printf 'a\nb\n' >disk/ed && printf '1s/a/A/\nw\nq\n' | ed -s disk/ed && cat disk/ed`, "A\nb\n"},
		{"vim", "vim", `printf 'a\nb\n' >disk/vi && vim -u NONE -es -c '%s/a/A/' -c wq disk/vi </dev/null; cat disk/vi; ls -a disk | grep -c vi`, "A\nb\n1\n"},
		{"vim with backup", "vim", `printf 'a\nb\n' >disk/vb && vim -u NONE -es -c 'set backup writebackup backupskip=' -c '%s/a/A/' -c wq disk/vb </dev/null; cat disk/vb disk/vb~`, "A\nb\na\nb\n"},
		{"vim in place", "vim", `printf 'a\nb\n' >disk/vp && vim -u NONE -es -c 'set backupcopy=yes' -c '%s/a/A/' -c wq disk/vp </dev/null; cat disk/vp`, "A\nb\n"},
		{"tee", "", `echo t | tee disk/tee && echo u | tee -a disk/tee >/dev/null && cat disk/tee`, "t\nt\nu\n"},
		{"sort -o", "", `printf 'b\na\n' >disk/so && sort -o disk/so disk/so && cat disk/so`, "a\nb\n"},
		{"git", "git", `mkdir disk/git && cd disk/git && git init -q . 2>&1 && echo x >f && git add f && git -c user.name=a -c user.email=b commit -qm m && git log --oneline | wc -l`, "1\n"},
		{"file", "file", `file -b svc/status`, "ASCII text\n"},
		{"patch", "patch", `printf 'a\n' >disk/pa; printf '1c\nA\n.\n' | patch -se disk/pa && cat disk/pa`, "A\n"},
		{"exec", "", `printf '#!/bin/sh\necho ran\n' >disk/x && chmod 755 disk/x && disk/x`, "ran\n"},
		{"flock", "flock", `touch disk/l && flock disk/l echo locked`, "locked\n"},
		{"df", "", `df --output=avail . | tail -1 | grep -c '[1-9]'`, "1\n"},
		{"stat -f", "", `stat -f -c %T .`, "fuseblk\n"},
		{"statfs type", "", `grep -c "$M fuse.harvest" /proc/mounts`, "1\n"},
		{"ln", "", `touch disk/ln; ! ln disk/ln disk/ln2 2>/dev/null; ! ln -s ln disk/ln3 2>/dev/null; ls disk | grep -c ln`, "1\n"},
		{"absent", "", `cat disk/none 2>&1 | grep -o 'No such file.*'; cat disk/f/x 2>&1 | grep -o 'Not a directory'; cat disk 2>&1 | grep -o 'Is a directory'`, "No such file or directory\nNot a directory\nIs a directory\n"},
		{"unlinked and open", "", `echo keep >disk/u; exec 3<disk/u; rm disk/u; ! test -e disk/u; cat <&3; stat -L -c %s /proc/self/fd/3`, "keep\n5\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := exec.LookPath(tt.need); tt.need != "" && err != nil {
				t.Skip(err)
			}
			c := &child{tb: t, dir: c.dir, errs: c.errs}
			if got := c.sh(tt.script); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.script, got, tt.want)
			}
		})
	}
	if s := c.errs.String(); strings.Contains(s, "level=") {
		t.Errorf("the server complained:\n%s", s)
	}
}

// TestConfig edits a checked file the ways people do.
func TestConfig(t *testing.T) {
	c := mount(t)
	for _, tt := range []struct{ name, need, script, want string }{
		{"read", "", `cat config`, "root url=http://a/\n"},
		{"redirect", "", `/bin/echo 'root url=http://b/' >config; cat config`, "root url=http://b/\n"},
		{"append", "", `/bin/echo 'depth=2' >>config; cat config`, "root url=http://b/\ndepth=2\n"},
		{"sed", "", `sed -i s/2/3/ config; cat config; ls`, "root url=http://b/\ndepth=3\nconfig\nctl\nerr\nevents\nmade\nstatus\n"},
		{"perl", "perl", `perl -pi -e s/3/4/ config; cat config`, "root url=http://b/\ndepth=4\n"},
		{"ed", "ed", `printf '2s/4/5/\nw\nq\n' | ed -s config; cat config`, "root url=http://b/\ndepth=5\n"},
		{"vim", "vim", `vim -u NONE -es -c '%s/5/6/' -c wq config </dev/null; cat config`, "root url=http://b/\ndepth=6\n"},
		{"vim with backup", "vim", `vim -u NONE -es -c 'set backup backupskip=' -c '%s/6/7/' -c wq config </dev/null; cat config config~; rm config~`, "root url=http://b/\ndepth=7\nroot url=http://b/\ndepth=6\n"},
		{"cp", "", `echo 'depth=8' >$T/n; cp $T/n config; cat config`, "depth=8\n"},
		{"cp -p", "", `echo 'depth=9' >$T/n; cp -p $T/n config; cat config`, "depth=9\n"},
		{"mv in place", "", `echo 'depth=10' >new; mv new config; cat config`, "depth=10\n"},
		{"bad by echo", "", `/bin/echo bad >config 2>/dev/null; cat config; cat config.rejected; rm config.rejected`, "depth=10\nbad\n"},
		{"bad by cp", "", `echo bad >$T/n; ! cp $T/n config 2>/dev/null && cat config`, "depth=10\n"},
		{"bad by mv", "", `echo bad >new; ! mv new config 2>/dev/null; cat config; rm -f new`, "depth=10\n"},
		{"err tells", "", `grep -c 'bad word' err`, "1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := exec.LookPath(tt.need); tt.need != "" && err != nil {
				t.Skip(err)
			}
			c := &child{tb: t, dir: c.path("svc"), errs: c.errs}
			if got := c.sh(tt.script); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.script, got, tt.want)
			}
		})
	}
}
