# what is done on the mounted trees of TestV9fs and TestMount, with sh -e
set -x
T=${T:-/tmp} # for what is not in the tree
fail() { echo "FAILED: $*"; exit 1; }
same() { [ "$1" = "$2" ] || fail "got '$1', want '$2'"; }
refused() { # words, then a command
	words=$1; shift
	if "$@" 2>$T/err; then fail "$* was not refused"; fi
	grep -q "$words" $T/err || fail "$*: $(cat $T/err), want $words"
}
same "$(ls | tr '\n' ' ')" 'a ctl events f log ro shut '
same "$(cat a/b/c)" 'text of c'
same "$(stat -c '%a %s %F' f)" '644 6 regular file'
refused 'No such file' cat a/nothing
refused 'Not a directory' ls f/x
refused 'Permission denied' touch ro/new
refused 'Permission denied' rm ro/fixed
# make, write, append, truncate, rename over, remove
echo one >a/new; echo two >>a/new; same "$(cat a/new)" "$(printf 'one\ntwo')"
echo x >a/new; same "$(cat a/new)" x
cp -p f a/copy; mv a/copy a/new; same "$(cat a/new)" hello
[ ! -e a/copy ] || fail 'moved and still there'
sed -i s/hello/goodbye/ a/new; same "$(cat a/new)" goodbye
command -v ed >/dev/null || ed() { cat >$T/ed; sed -i s/goodbye/hello/ $1; }
printf '1s/goodbye/hello/\nw\nq\n' | ed a/new >/dev/null; same "$(cat a/new)" hello
command -v vi >/dev/null || vi() { busybox vi "$@"; }
vi -c 's/hello/vi was here/' -c wq a/new </dev/null >/dev/null; same "$(cat a/new)" 'vi was here'
chmod 600 a/new; same "$(stat -c %a a/new)" 600
touch -d '2001-02-03 04:05:06' a/new; same "$(stat -c %Y a/new)" "$(date -d '2001-02-03 04:05:06' +%s)"
mkdir a/dir; refused 'exists' mkdir a/dir
echo x >a/dir/x; refused 'not empty' rmdir a/dir
rm a/dir/x; rmdir a/dir
dd if=/dev/zero of=a/big bs=1000 count=3000 2>/dev/null; sync; same "$(stat -c %s a/big)" 3000000
same "$(wc -c <a/big)" 3000000
rm -r a/big a/new
# ctl: truncation is nothing, a bad line fails the write
echo 'all right' >ctl
if echo bad >ctl 2>$T/err; then fail 'a bad line was taken'; fi
# a read that waits ends with its reader, and others go on
(exec cat events >$T/ev) & cat=$!
same "$(cat f)" hello
sleep 1; kill -9 $cat; wait $cat || true
same "$(cat f)" hello
# a log that grows
tail -f log >$T/tail & tail=$!
sleep 1; echo more >>log; n=0
until grep -q more $T/tail; do n=$((n+1)); [ $n -lt 10 ] || fail 'tail -f is silent'; sleep 1; done
kill $tail
cp -r a $T/a; same "$(cat $T/a/b/c)" 'text of c'
tar cf $T/a.tar a; same "$(tar tf $T/a.tar | wc -l)" 3
find . -type f ! -name events | xargs cat >/dev/null
echo 'all is well'
