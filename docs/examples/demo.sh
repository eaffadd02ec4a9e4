# demo.sh: what the demonstrations have in common; each reads it with ". demo.sh".
#
# A demonstration makes a folder of its own, begins a server in it, builds a
# Broker from documents of Debian packages, shows what it is about, and compares
# what it finds with what it should. It ends with 0 if all is as it should be, 1
# if not, and 77 if a package is missing that it takes its documents from.
set -eu
export LC_ALL=C.UTF-8
work=$(mktemp -d)
export HARVEST_DIR=$work/state
cleanup() {
	status=$?
	trap - EXIT
	for pid in ${pids:-}; do kill "$pid" 2>/dev/null || :; done
	wait
	rm -r "$work"
	exit $status
}
trap cleanup EXIT
trap 'exit 1' INT TERM
pids=

# need FILE PACKAGE: end here if the package with that file is not installed.
need() {
	[ -e "$1" ] && return
	echo "this demonstration needs $1, of the package $2" >&2
	exit 77
}

# begin: run a server with a state of its own.
begin() {
	harvest serve >"$work/addresses" 2>"$work/log" &
	pids="$pids $!"
	until [ -s "$work/addresses" ]; do
		kill -0 $! || { cat "$work/log" >&2; exit 1; }
		sleep 0.1
	done
}

# web FOLDER: serve a folder at $site, with a line of size and path for each
# request in $work/access.
web() {
	nginx=$(command -v nginx || echo /usr/sbin/nginx)
	need "$nginx" nginx-light
	port=8600
	user= # it would be somebody else, who may not read here
	[ "$(id -u)" != 0 ] || user='user root;'
	while
		port=$((port + 1))
		cat >"$work/nginx.conf" <<-E
		$user daemon off; pid $work/nginx.pid; error_log $work/nginx.log;
		events { }
		http {
			types { text/html html; text/plain txt; }
			default_type application/octet-stream;
			log_format sizes '\$bytes_sent \$uri';
			access_log $work/access sizes;
			client_body_temp_path $work/t1; proxy_temp_path $work/t2; fastcgi_temp_path $work/t3; uwsgi_temp_path $work/t4; scgi_temp_path $work/t5;
			server { listen 127.0.0.1:$port; root $1; autoindex on; }
		}
		E
		rm -f "$work/nginx.pid"
		"$nginx" -c "$work/nginx.conf" 2>>"$work/nginx.out" &
		pid=$!
		until [ -s "$work/nginx.pid" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
		! [ -s "$work/nginx.pid" ]
	do [ $port -lt 8700 ] || { cat "$work/nginx.out" >&2; exit 1; }; done
	pids="$pids $pid"
	site=http://127.0.0.1:$port
}

# gather NAME LINE...: make a Gatherer with that config, and have it gather.
gather() {
	name=$1
	shift
	[ -n "$(harvest ls gather | grep -x "$name/")" ] || harvest mkdir "gather/$name"
	printf '%s\n' "$@" | harvest write "gather/$name/config"
	harvest write "gather/$name/ctl" run
	harvest watch "gather/$name" >/dev/null
}

# broker NAME LINE...: make a Broker with that config, and have it collect.
broker() {
	name=$1
	shift
	harvest mkdir "broker/$name"
	printf '%s\n' "$@" | harvest write "broker/$name/config"
	harvest write "broker/$name/ctl" collect
	harvest watch "broker/$name" >/dev/null
}

# figure FILE NAME: the number that a status has under a name.
figure() { harvest cat "$1" | sed -n "s/^$2=//p"; }

# first BROKER QUERY [N]: the last parts of the URLs of what is found, the best first.
first() { harvest query "$1" "$2" | cut -f 5 | sed 's,.*/,,; s,.*#,,' | head -n "${3:-1}"; }

# check WHAT GOT WANT: say what is so, or end.
check() {
	if [ "$2" != "$3" ]; then
		printf '%s: got\n%s\nwant\n%s\n' "$1" "$2" "$3" >&2
		exit 1
	fi
	printf 'as it should be: %s: %s\n' "$1" "$(echo $2)"
}

# holds WHAT TEST...: say that a test holds, or end.
holds() {
	what=$1
	shift
	[ "$@" ] || { echo "$what: $* does not hold" >&2; exit 1; }
	echo "as it should be: $what: $*"
}
