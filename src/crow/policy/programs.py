"""Tables of programs whose arguments say what is run: wrappers, shells, runners of scripts. Names only: options are in
`option_table.toml`.
"""

import os
import re

from crow.policy.base import names, phrases

_VERSION = re.compile(r"(?<=[a-z+])[-.]?\d[\d.]*$")
_COMPILERS = names(
    """
    gcc g++ cc c++ clang clang++ cpp tcc icc icpc icx icpx nvcc gfortran rustc swiftc ghc as ld nasm yasm
    """
)
"""They include whatever their input names, and print it, or what is wrong with it."""


def program(name: str) -> str:
    """How the tables call it: `/usr/bin/Python3.11` is `python`, as far as these lists are concerned."""
    base = os.path.basename(name).casefold().removesuffix(".exe")
    plain = _VERSION.sub("", base)
    if plain.startswith("g") and plain[1:] in _GNU:
        return plain[1:]  # as they are called where the system has its own
    target, _, tool = plain.rpartition("-")
    return tool if target.count("-") and tool in _COMPILERS else plain  # `x86_64-linux-gnu-gcc`


_GNU = names("find sort sed tar awk xargs env timeout nice nohup stdbuf chroot shuf split make date")

WRAPPERS: dict[str, int] = {
    **dict.fromkeys(
        names("""
        env sudo doas nice ionice nohup setsid stdbuf time command builtin exec xargs unshare nsenter strace ltrace
        busybox toybox coproc caffeinate systemd-run firejail bwrap proot fakeroot numactl unbuffer rlwrap torsocks
        tsocks proxychains xvfb-run entr npx bunx pnpx uvx catchsegv valgrind perf gdb rr pkexec run0 start-stop-daemon
        setpriv choom prlimit dbus-run-session ssh-agent sshpass autossh eatmydata faketime chpst tini dumb-init gosu
        su-exec linux32 linux64 chronic ifne cgexec systemd-inhibit systemd-cat cross-env env-cmd dotenvx watchexec
        lldb nodemon chokidar onchange tsp nq
        """),
        0,
    ),
    **dict.fromkeys(names("timeout chroot flock chrt taskset setarch cpulimit runuser"), 1),
}
"""Programs that run the command their arguments name, and how many plain words come before that command."""

FROM_INPUT = frozenset({"xargs", "parallel"})
"""Wrappers that add words of their own to the command, from what they read."""

SHELLS = names("sh bash dash zsh ksh mksh ash fish csh tcsh rbash yash elvish nu xonsh pwsh")
CODE_WORDS = names("eval watch parallel ssh mosh")
"""Their arguments, put together, are a shell line."""
CODE_OPTIONS = {
    "su": "c",
    "runuser": "c",
    "script": "c",
    "flock": "c",
    "npx": "c",
    "npm": "c",
    "compgen": "C",
}
"""The value of this option is a shell line."""

RUNNERS: dict[tuple[str, ...], int] = {
    **dict.fromkeys(
        phrases("""
        uv+run uv+tool+run uvx poetry+run pipenv+run pdm+run hatch+run rye+run pixi+run pipx+run bundle+exec conda+run
        mamba+run micromamba+run mise+exec mise+x opam+exec stack+exec stack+run npm+exec npm+x pnpm+exec pnpm+dlx
        yarn+exec yarn+dlx yarn+run bun+x git+bisect+run git+submodule+foreach perf+stat perf+record
        cmake+-E+env cmake+-E+time nix+develop nix+shell nix+run heroku+run npm+explore composer+exec lerna+exec
        yarn+workspace+exec yarn+workspace+node yarn+workspaces+exec op+run doppler+run dotenv+run chamber+exec
        """),
        0,
    ),
    **dict.fromkeys(
        phrases("""
        docker+run docker+exec docker+container+run docker+container+exec podman+run podman+exec nerdctl+run
        nerdctl+exec kubectl+exec kubectl+run oc+exec oc+run rustup+run docker+compose+exec docker+compose+run
        lxc+exec direnv+exec docker-compose+run docker-compose+exec flatpak+run toolbox+run apptainer+exec
        singularity+exec adb+shell vagrant+ssh multipass+exec limactl+shell minikube+ssh aws-vault+exec
        """),
        1,
    ),
}
"""The same as `WRAPPERS`, for programs that do so in one of their sub-commands."""
CODE_TEXTS = phrases("tmux screen compgen complete git+submodule+foreach hyperfine entr nodemon concurrently dtach")
"""Any of their words may be a shell line."""

EXACT_ONLY = (
    frozenset(WRAPPERS)
    | CODE_WORDS
    | names(
        """
        source . trap alias unalias set shopt hash enable bind complete compgen compopt fc let read mapfile readarray
        getopts export declare typeset local readonly unset exit return umask ulimit pushd popd
        su script socat nc ncat telnet screen tmux at batch crontab expect
        vi vim vim.tiny vim-tiny vim.basic vimdiff nvim view ex ed emacs nano sqlite psql mysql mariadb mongosh
        redis-cli gpg openssl hyperfine elixir iex m4 dc bc r rscript opam stack mise coverage conda mamba duckdb mongo
        run-parts concurrently npm-run-all run-s run-p pee mispipe envdir
        micromamba rails timeit pdb trace cprofile profile runpy code doctest
        cp mv install rsync scp sftp ftp lftp wget aria2c axel yt-dlp youtube-dl ps printenv yq
        tar bsdtar star pax unzip cpio bsdcpio 7z 7za 7zr 7zz p7zip ar jar rar unrar unar unp aunpack dtrx ouch rpm2cpio
        rpm2archive cabextract unsquashfs uudecode unshar munpack ripmime patch gpatch zipfile tarfile
        gzip gunzip pigz unpigz bzip bunzip pbzip xz unxz zstd unzstd lzma unlzma lz unlz lzip uncompress brotli
        """
    )
    | _COMPILERS
)
"""Never covered by a rule that ends in `*`: a word may name what is run, or change what the rest of the line means; or
a folder that is named, or what a file says, lets something protected be written; or everybody's environment is printed,
or files that no word names."""

EXACT_PHRASES: frozenset[tuple[str, ...]] = phrases(
    """
    docker+run docker+exec podman+run podman+exec kubectl+exec kubectl+run rustup+run uv+tool mix+run git+bisect
    git+submodule git+filter-branch git+config git+hook git+update-index git+apply git+am git+checkout-index
    git+fast-import git+quiltimport hg+import hg+unbundle svn+patch docker+cp podman+cp kubectl+cp npm+config npm+set
    pnpm+config yarn+config pip+config gh+alias pnpm+list pnpm+ls pnpm+why pnpm+outdated
    """
)
"""The same, for sub-commands."""

CHOOSERS: frozenset[tuple[str, ...]] = frozenset((shell,) for shell in SHELLS) | phrases(
    """
    python pypy ipython perl ruby node nodejs deno bun php lua luajit julia tclsh osascript groovy scala
    mawk nawk java dotnet tsx ts-node uv+run poetry+run pdm+run hatch+run pipx+run pipenv+run npm+exec npm+x pnpm+exec
    pnpm+dlx yarn+exec yarn+dlx yarn+run yarn+node bun+run bun+x bun+exec deno+run deno+eval dotnet+exec bundle+exec
    direnv+exec nix+run nix+shell go+run rye+run pixi+run irb pry ghci jshell ocaml guile racket sbcl clisp clojure clj
    bb octave gnuplot swift escript erl coffee zx wish
    """
)
"""The word after these says what is run. A rule with `*` covers them only if it spells that word out, as in
`python -m pytest *` or `bash scripts/test.sh *`."""

PASS_WORDS_ON = phrases("python pypy uv+run poetry+run pipenv+run pipx+run bundle+exec")
"""Those of them that give the words behind it to what they run as they are, and to no shell."""

FILE_RUNNERS = SHELLS | names("python pypy perl ruby node nodejs bun php lua luajit tclsh tsx ts-node")
"""Those of them that take what they read for text once a file says what is run."""

TAKES_TEXT = names("tee column base64 base32 fmt pr strings hexdump")
"""Programs of which no more is known than that: what they are given to read is text to them."""

MODULE_RUNNERS = names("python pypy")
"""`python -m X` is X, as far as X is known."""

HARMLESS = names(
    """
    echo cat head tail pwd true false basename dirname realpath readlink stat cut tr nl od cmp comm seq sleep which
    type whoami id uname nproc df tac rev fold expand paste mkdir touch cd
    """
)
"""Programs that are known to have no option that runs or overwrites something, in whatever folder they run, nor one
that reads what no word names."""

SUBCOMMANDS = names(
    """
    git hg svn jj npm pnpm yarn bun cargo go pip uv poetry pdm hatch conda dotnet mvn gradle gh glab rustup apt apt-get
    brew dnf systemctl terraform helm bundle gem rails mix composer swift flutter dart deno nix just task make tox nox
    """
)
"""Programs whose second word says what is done: an "always" keeps it."""

GOAL_RUNNERS = names("make ninja rake gradle gradlew mvn mvnw ant gulp grunt invoke inv")
"""Each of their plain words is something that is done, in whatever order."""

ALIASES: dict[str, tuple[frozenset[str], ...]] = {
    "npm": (
        names("install i in ins inst insta instal isnt isnta isntal isntall add"),
        names("ci clean-install ic install-clean isntall-clean"),
        names("uninstall un unlink remove rm r"),
        names("update up upgrade udpate"),
        names("run run-script rum urn"),
        names("test t tst"),
        names("exec x"),
    ),
    "pnpm": (names("install i"), names("run run-script"), names("remove rm uninstall un"), names("update up upgrade")),
    "bun": (names("install i"), names("add a"), names("remove rm")),
    "cargo": (names("build b"), names("check c"), names("test t"), names("run r"), names("doc d"), names("remove rm")),
    "brew": (names("uninstall remove rm"),),
    "helm": (names("uninstall un del delete"),),
}
"""Other names of sub-commands: a rule that refuses one refuses all."""

TO_THE_LETTER: frozenset[tuple[str, ...]] = phrases(
    """
    rm rmdir unlink shred dd truncate mkfs mount umount kill pkill killall chmod chown chgrp ln shutdown reboot make
    docker podman kubectl terraform helm aws gcloud az systemctl apt apt-get dnf brew
    git+push git+reset git+clean git+checkout git+restore git+rm git+stash git+apply git+am git+clone
    npm+publish cargo+publish gh+repo gh+secret npm+install npm+i npm+ci npm+add npm+uninstall npm+update pip+install
    """
)
"""What cannot be taken back, or runs or fetches what its words name: an "always" for these remembers the words as they
are."""
