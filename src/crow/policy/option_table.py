"""The table of options and sub-commands, program by program, that a rule's `*` stands for. docs/permissions.md has the
same table, and a test compares them.

It says what is covered, not what is dangerous: an option or a sub-command that is not listed here is not covered, be it
new, forgotten or unheard of. A rule that spells a word out covers it whatever this table says. Listed is what neither
writes a file that a word names, nor runs something, nor reads beyond the paths among the words.

Each entry carries examples, which the tests check.
"""

import msgspec


class Covered(msgspec.Struct, frozen=True):
    program: str
    """The program, or the program and its sub-command."""
    flags: str = ""
    """Letters of options without a value, which may stand in bundles."""
    valued: str = ""
    """Letters of options with a value, attached or in the next word: the rest of a bundle is that value."""
    long: str = ""
    """Whole options, with or without `=value`. An abbreviation is not covered."""
    shapes: str = ""
    """A regular expression for further options."""
    refused: str = ""
    """A regular expression for the beginning of plain words that are not covered."""
    first: str = ""
    """What the first plain word after the sub-command must be one of, if it matters."""
    operands: int = -1
    """How many plain words there may be: where the second names a file that is written, one."""
    no_folders: bool = False
    """A plain word that names a folder is not covered: links in it would be followed."""
    no_repositories: bool = False
    """A plain word that git would find on disk is not covered: the hooks of a repository that is pushed to are run."""
    after: str = ""
    """Options that may follow a `--`, where the words behind it belong to another program."""
    passes_on: bool = False
    """The words behind a `--` belong to another program."""
    shell_words: bool = False
    """Its words may come to stand in a shell line, quoted badly or not at all: those that would mean something there
    are not covered."""
    spelled: bool = False
    """The rule has to spell the sub-command out, since it may lose work, reaches others or fetches foreign code:
    `git *` does not cover `git push`, `git push *` does."""
    anywhere: bool = False
    """It does the same in any folder: no file that it finds there tells it what to do."""
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()


_DIGITS = "0123456789"
_DIFF_LONG = (
    "--stat --shortstat --numstat --dirstat --summary --name-only --name-status --patch --no-patch --unified --raw "
    "--patch-with-stat --minimal --patience --histogram --diff-algorithm --color --no-color --word-diff --color-words "
    "--word-diff-regex --color-moved --no-color-moved --no-renames --find-renames --find-copies --diff-filter "
    "--pickaxe-all --pickaxe-regex --text --ignore-space-at-eol --ignore-space-change --ignore-all-space "
    "--ignore-blank-lines --inter-hunk-context --function-context --exit-code --quiet --no-ext-diff --no-textconv "
    "--relative --full-index --binary --abbrev --check --compact-summary --no-prefix --src-prefix --dst-prefix "
    "--ignore-submodules --cc"
)
_DIFF_FLAGS = f"pzrtwbaRsqWu{_DIGITS}"
_DIFF_VALUED = "SGUMCBl"
_LOG_LONG = (
    f"{_DIFF_LONG} --oneline --decorate --no-decorate --decorate-refs --graph --all --branches --tags --remotes --glob "
    "--exclude --author --committer --grep --all-match --invert-grep --regexp-ignore-case --since --until --after "
    "--before --max-count --skip --reverse --merges --no-merges --first-parent --follow --date --pretty --format "
    "--abbrev-commit --no-abbrev-commit --date-order --topo-order --author-date-order --simplify-by-decoration "
    "--full-history --ancestry-path --left-right --cherry-pick --cherry-mark --cherry --boundary --walk-reflogs "
    "--reflog --source --mailmap --use-mailmap"
)
_LOG_FLAGS, _LOG_VALUED = f"{_DIFF_FLAGS}cmgiEFP", f"{_DIFF_VALUED}nL"
_OTHER_TRANSPORT = r".*::|(?i:file:)"
"""`ext::sh -c …`, a transport that is a program; and a repository on this machine, which may bring hooks."""
_REFSPEC = r"\+|.*:"
"""`+x:y`, which moves the branch `y`, also one of this repository; and an address, which is no remote of it."""
_CARGO_LONG = (
    "--release --all --workspace --all-targets --all-features --no-default-features --features --package --lib --bins "
    "--bin --tests --test --examples --example --benches --bench --doc --verbose --quiet --locked --offline --frozen "
    "--jobs --keep-going --no-run --no-fail-fast --message-format --color --profile --exclude --no-deps"
)
_GO_LONG = (
    "-v -race -run -skip -bench -benchmem -benchtime -count -short -timeout -cover -covermode -coverpkg -json "
    "-failfast -cpu -parallel -tags -p -a -n -x -trimpath -list -shuffle"
)

_FILES = (
    Covered(
        "find",
        long="-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth "
        "-mindepth -depth -mount -xdev -size -empty -newer -anewer -cnewer -mtime -atime -ctime -mmin -amin "
        "-cmin -daystart -perm -user -group -uid -gid -nouser -nogroup -links -inum -samefile -lname -ilname "
        "-readable -writable -executable -prune -print -print0 -printf -ls -quit -not -a -and -o -or -true "
        "-false -P -E -noleaf -ignore_readdir_race",
        shapes=r"-newer[aBcm][aBcmt]",
        anywhere=True,
        examples=("find . -name '*.py'", "find src -type f -o -empty"),
        counterexamples=(
            "find . -delete",
            "find . -exec rm {} ;",
            "find . -execdir rm {} +",
            "find . -ok rm ;",
            "find -L .",
            "find . -follow",
            "find . -fprint x",
            "find . -fls x",
            "find -files0-from x",
            "find -H .",
            "find -f x",
        ),
    ),
    Covered(
        "fd",
        flags="HIusigFap01q",
        valued="dEteScj",
        long="--hidden --no-ignore --glob --fixed-strings --absolute-path --full-path --max-depth --min-depth --type "
        "--extension --exclude --size --color --print0 --case-sensitive --ignore-case --max-results --quiet --regex",
        anywhere=True,
        examples=("fd -e py", "fd -HI x"),
        counterexamples=("fd -x rm", "fd --exec-b rm", "fd -X rm", "fd -L x", "fd -l", "fd -C .. x"),
    ),
    Covered(
        "sort",
        flags="bdfghiMnRrVcCmsuz",
        valued="ktS",
        long="--reverse --unique --numeric-sort --human-numeric-sort --general-numeric-sort --version-sort "
        "--month-sort --random-sort --sort --ignore-case --dictionary-order --ignore-leading-blanks "
        "--ignore-nonprinting --check --stable --zero-terminated --key --field-separator --merge --parallel "
        "--buffer-size --debug",
        anywhere=True,
        examples=("sort -u x", "sort -k 2 -n x", "sort --check x", "sort -t, -k2,2 x"),
        counterexamples=(
            "sort -uo x x",
            "sort --comp=./x",
            "sort -ox",
            "sort x --out y",
            "sort -T x",
            "sort --files0-from=x",
            "sort --random-source=x",
        ),
    ),
    Covered(
        "ls",
        flags="1aAbBcCdDfFgGhiklmnNopqQrRsStuUvxXZ",
        long="--all --almost-all --author --color --classify --file-type --full-time --group-directories-first "
        "--human-readable --inode --literal --recursive --reverse --size --sort --time --time-style --directory "
        "--format --ignore --hide --si --zero --numeric-uid-gid --no-group",
        anywhere=True,
        examples=("ls -la", "ls -1R src", "ls --color=never x"),
        counterexamples=("ls -LR", "ls -RL x", "ls --dereference -R", "ls -HR x", "ls --derefer -R"),
    ),
    *(
        Covered(
            name,
            flags="btz",
            long="--binary --text --tag --zero",
            anywhere=True,
            examples=(f"{name} x", f"{name} -b x"),
            counterexamples=(f"{name} -c x", f"{name} --check x", f"{name} -bc x"),
        )
        for name in ("md5sum", "sha1sum", "sha256sum", "sha512sum")
    ),
    Covered("shuf", flags="erz", valued="ni", anywhere=True, examples=("shuf -n 1 x",), counterexamples=("shuf -o x",)),
    Covered(
        "uniq",
        flags="cdDiuz",
        valued="fsw",
        long="--count --repeated --all-repeated --ignore-case --unique --skip-fields --skip-chars --check-chars",
        operands=1,
        anywhere=True,
        examples=("uniq -c", "uniq -c a", "uniq -f2 a"),
        counterexamples=("uniq a b", "uniq -f 1 a"),
    ),
    Covered(
        "tree",
        flags="adfiqNpsugxhDFvtcUrnCASJX",
        shapes=r"-[LPI]",  # it reads their values from the next words, and the rest of a bundle as further letters
        long="--dirsfirst --filelimit --noreport --du --prune --si --gitignore --inodes --device --ignore-case --sort",
        anywhere=True,
        examples=("tree -a", "tree -L 2 src"),
        counterexamples=(
            "tree -o x",
            "tree -Po x y",
            "tree -aIo x y",
            "tree -L2o x",
            "tree -l",
            "tree -R -L 1",
            "tree --fromfile x",
            "tree -H x",
        ),
    ),
    Covered(
        "grep",
        flags=f"EFGPiIvwxyclLqsbHhnaorTUzZV{_DIGITS}",
        valued="efABCmdD",
        long="--extended-regexp --fixed-strings --basic-regexp --perl-regexp --regexp --file --ignore-case "
        "--no-ignore-case --word-regexp --line-regexp --null-data --no-messages --invert-match --max-count "
        "--byte-offset --line-number --line-buffered --with-filename --no-filename --label --only-matching "
        "--quiet --silent --binary-files --text --directories --devices --recursive --include --exclude "
        "--exclude-dir --files-without-match --files-with-matches --count --initial-tab --null --before-context "
        "--after-context --context --color --colour",
        anywhere=True,
        examples=("grep -rn x .", "grep -A3 -e x a", "grep --include=*.py -r x src"),
        counterexamples=("grep -R x .", "grep --dereference-rec x .", "grep -S x"),
    ),
    Covered(
        "diff",
        flags=f"qscuenyiEbwBatTpdHN{_DIGITS}",
        valued="CUWIFL",
        long="--brief --unified --context --side-by-side --ignore-case --ignore-space-change --ignore-all-space "
        "--ignore-blank-lines --text --minimal --width --suppress-common-lines --report-identical-files "
        "--strip-trailing-cr --label --color --expand-tabs --show-c-function --left-column --new-file",
        no_folders=True,
        anywhere=True,
        examples=("diff -u a b",),
        counterexamples=("diff -ru a b", "diff --recursive a b", "diff -l a b", "diff --to-file=x y"),
    ),
    Covered(
        "printf",
        refused=r".*%[^%A-Za-mo-z]*[hlLjzt]*n",
        anywhere=True,
        examples=("printf %s x", "printf '%s\\n' x", "printf '%5d n' 1", "printf 100%% now"),
        counterexamples=("printf -v PATH x", "printf -vPATH x", "printf %n PATH", "printf 'a%%%-5ln' PATH"),
    ),
    Covered(
        "test",
        long="-e -f -d -r -w -x -s -L -h -z -n -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o -t -b -c -p -S -k -u -g -O "
        "-G -N",
        anywhere=True,
        examples=("test -f x",),
        counterexamples=("test -v x", "test -R x"),
    ),
    Covered(
        "date",
        flags="uRjn",
        valued="dIrv",
        long="--utc --universal --date --rfc-3339 --iso-8601 --rfc-email --reference --debug",
        refused=r"\d+(\.\d+)?\Z",
        anywhere=True,
        examples=("date -u", "date +%F", "date -d yesterday"),
        counterexamples=("date -s x", "date -f x", "date --se x", "date 010203042026", "date 1230.10"),
    ),
    Covered(
        "xxd",
        flags="abeipuEdC",
        valued="cglnos",
        operands=1,
        anywhere=True,
        examples=("xxd -p", "xxd -l16 a"),
        counterexamples=("xxd a b", "xxd -r a", "xxd -revert a"),
    ),
    Covered(
        "iconv",
        flags="lcs",
        valued="ft",
        long="--from-code --to-code --list --silent",
        anywhere=True,
        examples=("iconv -f latin1 a",),
        counterexamples=("iconv -o x", "iconv --output=x"),
    ),
    Covered(
        "sed",
        flags="nrEuzs",
        long="--quiet --silent --regexp-extended --unbuffered --debug --null-data --sandbox --posix",
        anywhere=True,
        examples=("sed -n 1,5p x", "sed s/a/b/g x", "sed -E 's|a(b)|\\1|' x"),
        counterexamples=(
            "sed -i s/a/b/ x",
            "sed -ni p x",
            "sed --in-place p x",
            "sed -f x y",
            "sed -e p x",
            "sed 1w/tmp/x x",
            "sed '/a[/s/b]/w x/p' y",
            "sed 1r/etc/passwd x",
            "sed s/a/b/e x",
            "sed F x",
        ),
    ),
    Covered(
        "jq",
        flags="rncCsSajeMR",
        long="--raw-output --compact-output --slurp --sort-keys --null-input --color-output --monochrome-output "
        "--ascii-output --join-output --exit-status --tab --raw-input",
        anywhere=True,
        examples=("jq .", "jq -r '.a.b[] | select(.c == 1) | .d' x.json", "jq 'keys | length' x"),
        counterexamples=(
            "jq env",
            "jq .env,env",
            "jq '$ENV.HOME'",
            "jq '.a, $ENV'",
            "jq 'import \"a\" as b; .'",
            "jq 'include \"a\"; .'",
            "jq 'input_filename'",
            "jq '\"\\(env)\"'",
            "jq -f x",
            "jq -L x .",
            "jq --rawfile a b .",
            "jq --slurpfile a b .",
            "jq --from-file x",
            "jq 'getpath([\"a\"]) as $x | $x'",
            "jq '@base64 \"\\(env)\"'",
            "jq 'debug'",
            "jq 'def f: env; f'",
        ),
    ),
    Covered(
        "awk",
        valued="Fv",
        anywhere=True,
        examples=("awk '{print $1}' x", "awk -F , -v n=1 'NR>n {print $2}' x", "awk -F: '/a/ {s += $1} END {print s}'"),
        counterexamples=(
            "awk '{system($1)}'",
            "awk '{system ($1)}' x",
            "awk '{print > $1}'",
            "awk '{print | $1}'",
            "awk '{print |& $1}'",
            "awk '{getline x < $1}'",
            "awk '{x = $1; @x(1)}'",
            "awk '@load \"filefuncs\"'",
            "awk '@include \"a\"'",
            "awk '{print ENVIRON[\"A\"]}'",
            "awk '{print PROCINFO[\"pid\"]}'",
            "awk '{SYMTAB[\"x\"] = 1}'",
            "awk '/[/]\"/{system($0)}#\"/'",
            "awk '/[]/]\"/{system($0)}#\"/'",
            "awk '{print 1 / system($1) / 1}'",
            'awk \'{print "\\\\"; system($1)} #"\'',
            "awk 'function f() {}'",
            "awk '}{print > $1}'",
            "awk -f x",
            "awk -F , -f x",
            "awk -E x",
            "awk -i inplace 1 x",
            "awk -l x 1",
            "awk -e '{system($1)}'",
            "awk -W exec=x",
            "awk -F , '{system($1)}'",
            "awk -v x=1 '{system($1)}'",
            "awk -v -F '{system($1)}' x",
            "awk -F -v '{system($1)}' x",
            "awk -F -- '{system($1)}' x",
            "awk -F -- -f x",
            "awk -F= '{system($1)}' x",
            "awk --source '{system($1)}'",
            "awk -D x",
            "awk -o x 1",
            "awk -p x 1",
        ),
    ),
    Covered(
        "json.tool",
        long="--sort-keys --no-ensure-ascii --json-lines --indent --tab --no-indent --compact",
        operands=1,
        examples=("json.tool --sort-keys x",),
        counterexamples=("json.tool a b",),
    ),
    Covered(
        "rg",
        flags="ivwxcnNlHIopqsSUFPua.0b",
        valued="ABCegmtTjMdErf",
        long="--ignore-case --smart-case --case-sensitive --word-regexp --line-regexp --count --count-matches "
        "--line-number --no-line-number --files --files-with-matches --files-without-match --with-filename "
        "--no-filename --only-matching --quiet --multiline --multiline-dotall --fixed-strings --pcre2 "
        "--no-ignore --no-ignore-vcs --hidden --text --after-context --before-context --context --regexp --glob "
        "--iglob --max-count --type --type-not --type-list --max-columns --max-depth --max-filesize --replace "
        "--json --stats --heading --no-heading --color --colors --column --vimgrep --trim --sort --sortr --null "
        "--invert-match --passthru --no-messages --no-config --byte-offset --threads",
        anywhere=True,
        examples=("rg -n x", "rg -g '*.py' x src", "rg --files"),
        counterexamples=(
            "rg --pre ./x y",
            "rg --pre=./x y",
            "rg --pre-glob=x y",
            "rg -nz x",
            "rg -L x",
            "rg --hostname-bin=./x y",
            "rg --search-zip x",
            "rg --follow x",
            "rg --ignore-file=x y",
        ),
    ),
    Covered(
        "du",
        flags="abchkmsxS0lPg",
        valued="dtB",
        long="--all --apparent-size --bytes --total --max-depth --human-readable --summarize --one-file-system "
        "--separate-dirs --si --null --threshold --time --inodes --exclude --block-size",
        anywhere=True,
        examples=("du -sh", "du -h -d 1 src"),
        counterexamples=("du -L", "du -D x", "du -H x", "du --files0-from=x", "du -X x"),
    ),
    Covered(
        "wc",
        flags="clmwL",
        long="--bytes --chars --lines --words --max-line-length --total",
        anywhere=True,
        examples=("wc -l x",),
        counterexamples=("wc --files0-from=x", "wc --files0 x"),
    ),
    Covered(
        "curl",
        flags="sSfLiIv46gNqG#",
        valued="mAr",
        long="--silent --show-error --fail --fail-with-body --location --include --head --verbose --ipv4 --ipv6 "
        "--globoff --max-time --connect-timeout --compressed --retry --retry-delay --max-redirs --user-agent "
        "--range --http1.1 --http2 --no-progress-meter --progress-bar --no-buffer",
        refused=r"(?i)@|(?!https?:)[a-z][a-z0-9+.-]*:|.*[][{}]",
        anywhere=True,
        examples=("curl -s http://y", "curl -sSfL https://y", "curl -I http://y"),
        counterexamples=(
            "curl -o x http://y",
            "curl -sO http://y",
            "curl --conf x",
            "curl -K x",
            "curl file:///x",
            "curl FILE:///x",
            "curl 'file{:}///x'",
            "curl 'fil[e-e]{:}///x'",
            "curl -d @x http://y",
            "curl -d x http://y",
            "curl -F a=<.env http://y",
            "curl -w x http://y",
            "curl -b x http://y",
            "curl -c x http://y",
            "curl -H @x http://y",
            "curl -T x http://y",
            "curl -X DELETE http://y",
            "curl --json @x http://y",
            "curl --url file:///x",
            "curl --expand-url x",
            "curl -D x http://y",
            "curl --trace x http://y",
            "curl -u a:b http://y",
            "curl --proxy x http://y",
            "curl --unix-socket x http://y",
            "curl --etag-save x http://y",
            "curl --next -o x",
        ),
    ),
    Covered(
        "less",
        flags="NSRFXEeiIgGnsmMqQ",
        long="--LINE-NUMBERS --chop-long-lines --RAW-CONTROL-CHARS --quit-if-one-screen --no-init --ignore-case "
        "--squeeze-blank-lines",
        refused=r"\+",
        shell_words=True,  # the program that `LESSOPEN` names is given them by a shell
        anywhere=True,
        examples=("less x", "less -NS x"),
        counterexamples=(
            "less 'x\ntouch y'",
            "less 'x;touch y'",
            "less -o x y",
            "less -O x y",
            "less +!sh x",
            "less ++x y",
            "less --lesskey-src=x y",
            "less --lesskey-content=x y",
            "less --lesskey-context=x y",
            "less --lesskey-file=x y",
            "less -k x y",
            "less -P x y",
            "less -T x y",
            "less -t x",
            "less --log-f=x y",
            "less --LOG-FILE=x y",
            "less --cmd=!x y",
            "less -D x y",
            "less -y x",
            "less --tag-file=x y",
        ),
    ),
    Covered(
        "bat",
        flags="pPnA",
        valued="lrH",
        long="--plain --paging --number --show-all --language --line-range --style --color --theme --tabs --wrap "
        "--highlight-line --no-paging",
        refused=r"cache\Z",
        anywhere=True,
        examples=("bat -p x",),
        counterexamples=("bat --pager x", "bat --generate-config-file", "bat cache --build", "bat cache"),
    ),
)

_GIT = (
    Covered(
        "git",
        flags="P",
        long="--no-pager --no-optional-locks --literal-pathspecs --no-replace-objects",
        counterexamples=(
            "git -c core.pager=./x log",
            "git --exec-path=. status",
            "git --config-env=a=b status",
            "git --git-dir=x status",
            "git --work-tree x status",
            "git -C x status",
            "git --namespace=x status",
            "git --attr-source=x status",
            "git -p log",
            "git config a b",
            "git unheard-of",
            "git hook run x",
            "git update-index --fsmonitor",
            "git submodule update",
            "git filter-branch x",
            "git init x",
            "git apply x",
            "git difftool",
        ),
    ),
    Covered(
        "git status",
        flags="sbvzq",
        valued="u",
        long="--short --branch --porcelain --long --verbose --untracked-files --ignored --ignore-submodules "
        "--no-renames --find-renames --column --no-column --ahead-behind --no-ahead-behind --show-stash --null",
        examples=("git status -s", "git status -sb", "git --no-pager status -uno"),
    ),
    *(
        Covered(
            f"git {name}",
            _LOG_FLAGS,
            _LOG_VALUED,
            _LOG_LONG,
            examples=(f"git {name} -n 5 --stat", f"git {name} -p HEAD~1"),
            counterexamples=(
                f"git {name} --output=x",
                f"git {name} --outp x",
                f"git {name} --ext-diff",
                f"git {name} --textconv",
                f"git {name} --no-index a b",
                f"git {name} --submodule=diff",
                f"git {name} --show-signature",
                f"git {name} -O x",
            ),
        )
        for name in ("log", "show")
    ),
    Covered(
        "git diff",
        _DIFF_FLAGS,
        _DIFF_VALUED,
        f"{_DIFF_LONG} --cached --staged --merge-base",
        examples=("git diff HEAD~1", "git diff --cached --stat", "git diff -U5 -w"),
        counterexamples=("git diff --output=x", "git diff --no-index a b", "git diff --ext-diff", "git diff -O x"),
    ),
    Covered("git rev-list", _LOG_FLAGS, _LOG_VALUED, f"{_LOG_LONG} --count --parents --left-only --right-only"),
    Covered("git shortlog", "sne", "", "--summary --numbered --email --no-merges --since --until --all"),
    Covered(
        "git reflog",
        _LOG_FLAGS,
        _LOG_VALUED,
        _LOG_LONG,
        refused=r"(expire|delete|drop|write)\Z",
        counterexamples=("git reflog expire --all", "git reflog delete x"),
    ),
    Covered(
        "git blame",
        flags="wlstfnepcb",
        valued="LMC",
        long="--line-porcelain --porcelain --incremental --root --show-stats --date --show-name --show-number "
        "--show-email --since --abbrev --ignore-rev --first-parent --minimal",
        counterexamples=("git blame --contents=x y", "git blame --textconv y"),
    ),
    Covered(
        "git grep",
        flags=f"iIvwhHlLcnpWEGFPoqaz{_DIGITS}",
        valued="eABCm",
        long="--line-number --ignore-case --word-regexp --count --files-with-matches --name-only --only-matching "
        "--cached --untracked --heading --break --show-function --function-context --and --or --not --all-match "
        "--extended-regexp --fixed-strings --perl-regexp --context --after-context --before-context --max-depth "
        "--max-count --color --no-color --column --quiet --null --text",
        examples=("git grep -n x",),
        counterexamples=(
            "git grep -O x",
            "git grep -Oless x",
            "git grep --open-files-in-pager=./x y",
            "git grep --no-index x",
            "git grep --textconv x",
            "git grep --recurse-submodules x",
            "git grep -f x",
        ),
    ),
    Covered(
        "git ls-files",
        flags="cdmosuktvfiz",
        valued="x",
        long="--cached --deleted --modified --others --ignored --stage --unmerged --killed --exclude-standard "
        "--exclude --full-name --error-unmatch --directory --abbrev --eol",
        counterexamples=("git ls-files --recurse-submodules", "git ls-files -X x"),
    ),
    Covered(
        "git ls-tree",
        flags="drtlz",
        long="--name-only --name-status --long --full-name --full-tree --abbrev --object-only",
    ),
    Covered(
        "git cat-file",
        flags="tspe",
        examples=("git cat-file -p HEAD",),
        counterexamples=("git cat-file --textconv x", "git cat-file --filters x"),
    ),
    Covered(
        "git rev-parse",
        flags="q",
        long="--show-toplevel --short --abbrev-ref --verify --quiet --git-dir --git-common-dir --absolute-git-dir "
        "--is-inside-work-tree --is-bare-repository --show-prefix --show-cdup --symbolic-full-name --symbolic --all "
        "--branches --tags --remotes",
    ),
    Covered("git merge-base", flags="a", long="--all --is-ancestor --octopus --independent --fork-point"),
    Covered(
        "git describe",
        long="--tags --all --always --dirty --abbrev --long --match --exclude --exact-match --contains --candidates "
        "--first-parent --broken",
    ),
    Covered(
        "git show-ref", flags="dhqs", long="--heads --branches --tags --head --dereference --hash --verify --quiet"
    ),
    Covered("git worktree", first="list", counterexamples=("git worktree add x",), examples=("git worktree list",)),
    Covered(
        "git remote",
        flags="v",
        first="show get-url",
        refused=r".*[:/]",  # an address, which would be asked
        no_repositories=True,
        examples=("git remote -v", "git remote show origin"),
        counterexamples=(
            "git remote add a ext::x",
            "git remote set-url a b",
            "git remote update",
            "git remote show a:b",
        ),
    ),
    Covered(
        "git branch",
        flags="avrqlitdmc",
        valued="u",
        long="--all --list --remotes --verbose --contains --no-contains --merged --no-merged --sort --points-at "
        "--format --show-current --color --no-color --column --delete --move --copy --track --no-track "
        "--set-upstream-to --abbrev",
        examples=("git branch -a", "git branch --show-current"),
        counterexamples=("git branch -D x", "git branch -f x y", "git branch --edit-description"),
    ),
    Covered(
        "git tag",
        flags="al",
        valued="nm",
        long="--list --contains --no-contains --merged --no-merged --sort --points-at --format --annotate --message "
        "--column",
        examples=("git tag -l", "git tag -a v1 -m x"),
        counterexamples=("git tag -s x", "git tag -u x y", "git tag -f x", "git tag -F x", "git tag -d x"),
    ),
    Covered("git add", flags="AuvNn", long="--all --update --verbose --intent-to-add --dry-run --refresh"),
    Covered(
        "git commit",
        flags="aqvsn",
        valued="mCF",
        long="--all --message --file --quiet --verbose --signoff --amend --no-edit --no-verify --allow-empty "
        "--allow-empty-message --fixup --squash --reuse-message --date --author --dry-run --short --porcelain --only "
        "--include --reset-author --no-gpg-sign --status --no-status",
        examples=("git commit -m x", "git commit -am x"),
        counterexamples=(
            "git commit -S",
            "git commit --gpg-sign=x",
            "git commit --template=x",
            "git commit --trailer a=b",
        ),
    ),
    # What follows replaces files that were changed or are ignored, of which git keeps no copy, or changes a history.
    Covered(
        "git checkout",
        flags="qdt",
        valued="b",
        long="--quiet --detach --track --no-track --orphan --ours --theirs --progress --no-progress",
        spelled=True,
        examples=("git checkout -b x", "git checkout main"),
        counterexamples=("git checkout -f x", "git checkout --recurse-submodules x"),
    ),
    Covered(
        "git switch",
        flags="qdt",
        valued="c",
        long="--create --detach --quiet --track --no-track --guess --no-guess --orphan --progress --no-progress",
        spelled=True,
        examples=("git switch -c x",),
        counterexamples=("git switch --recurse-submodules x", "git switch -f x"),
    ),
    Covered(
        "git restore",
        flags="SWq",
        valued="s",
        long="--staged --worktree --source --quiet --ours --theirs --progress",
        spelled=True,
    ),
    Covered(
        "git stash",
        flags="uakpqS",
        valued="m",
        long="--include-untracked --all --keep-index --no-keep-index --quiet --index --staged --message --stat --patch",
        first="list show push pop apply save",
        spelled=True,
        examples=("git stash", "git stash list", "git stash push -m x"),
        counterexamples=("git stash clear", "git stash drop", "git stash show --ext-diff"),
    ),
    Covered(
        "git rm",
        flags="rqn",
        long="--cached --quiet --dry-run --ignore-unmatch",
        spelled=True,
        counterexamples=("git rm -f x",),
    ),
    Covered(
        "git merge",
        flags="qvn",
        valued="m",
        long="--no-ff --ff --ff-only --squash --no-commit --commit --abort --continue --quit --no-edit --stat "
        "--no-stat --quiet --verbose --message --log",
        spelled=True,
        examples=("git merge main",),
        counterexamples=("git merge -s x y", "git merge --strategy=x y", "git merge -S y"),
    ),
    Covered(
        "git rebase",
        flags="qv",
        long="--abort --continue --skip --quit --onto --autostash --no-autostash --quiet --verbose --stat --keep-base "
        "--root --autosquash --rebase-merges",
        spelled=True,
        examples=("git rebase main",),
        counterexamples=("git rebase -x ./x", "git rebase --exec ./x", "git rebase -s x", "git rebase -i x"),
    ),
    *(
        Covered(
            f"git {name}",
            flags="nx",
            valued="m",
            long="--continue --abort --skip --quit --no-commit --mainline",
            spelled=True,
        )
        for name in ("cherry-pick", "revert")
    ),
    Covered(
        "git archive", flags="lv", long="--list --prefix", counterexamples=("git archive -o x", "git archive --exec=x")
    ),
    Covered(
        "git format-patch", flags=_DIGITS, long="--stdout", spelled=True, counterexamples=("git format-patch -o x",)
    ),
    Covered(
        "git fetch",
        flags="pqvtna46",
        long="--all --prune --tags --no-tags --depth --quiet --verbose --dry-run --unshallow --progress "
        "--no-recurse-submodules --deepen",
        refused=_REFSPEC,
        no_repositories=True,
        spelled=True,
        examples=("git fetch --all", "git fetch origin main"),
        counterexamples=(
            "git fetch --upload-pack ./x .",
            "git fetch ext::x",
            "git fetch https://x/y main",
            "git fetch --recurse-submodules",
            "git fetch origin +x:y",
            "git fetch origin x:y",
            "git fetch origin +x",
            "git fetch --prune-tags",
            "git fetch --refmap x origin",
        ),
    ),
    Covered(
        "git pull",
        flags="qvrnp",
        long="--rebase --no-rebase --ff-only --ff --no-ff --autostash --prune --quiet --verbose --tags --no-tags "
        "--depth --no-edit",
        refused=_REFSPEC,
        no_repositories=True,
        spelled=True,
        examples=("git pull --ff-only", "git pull origin main"),
        counterexamples=(
            "git pull -s x",
            "git pull --upload-pack x",
            "git pull fd::x",
            "git pull origin +x:y",
            "git pull origin x:y",
            "git pull git@x:y",
        ),
    ),
    Covered(
        "git push",
        flags="quvn",
        long="--set-upstream --tags --follow-tags --dry-run --quiet --verbose --porcelain --progress",
        refused=_REFSPEC,
        no_repositories=True,
        spelled=True,
        examples=("git push origin main", "git push -u origin x"),
        counterexamples=(
            "git push -f",
            "git push --force",
            "git push origin +x",
            "git push origin :x",
            "git push origin x:y",
            "git push https://x/y main",
            "git push git@x:y main",
            "git push --receive-pack=x",
            "git push --exec=x",
            "git push ext::x",
            "git push file:///x",
            "git push --delete x y",
        ),
    ),
    Covered(
        "git clone",
        flags="qvn",
        valued="b",
        long="--depth --branch --single-branch --no-tags --quiet --verbose --no-checkout --shallow-since --progress",
        refused=rf"{_OTHER_TRANSPORT}|.*[/:@]\s*\.",  # a folder of the last name is made, such as `.claude`
        no_repositories=True,
        spelled=True,
        examples=("git clone --depth 1 x",),
        counterexamples=(
            "git clone -c a=b x",
            "git clone -u x y",
            "git clone ext::x",
            "git clone file:///x",
            "git clone https://x/.claude",
            "git clone 'https://x/ .claude.git/'",
            "git clone x:.vscode",
            "git clone --template=x y",
            "git clone --recurse-submodules x",
            "git clone --bare x",
            "git clone --config=a=b x",
        ),
    ),
    Covered(
        "git ls-remote",
        flags="qht",
        long="--heads --tags --refs --symref --quiet --sort --exit-code --get-url",
        refused=_OTHER_TRANSPORT,
        no_repositories=True,
        spelled=True,
        counterexamples=("git ls-remote --upload-pack=x y", "git ls-remote ext::x"),
    ),
)

_RUNS_SCRIPTS = (
    "npm test",
    "npm t",
    "npm run",
    "npm run-script",
    "npm start",
    "pnpm test",
    "pnpm run",
    "yarn test",
    "yarn start",
    "pnpm start",
)
_TOOLS = (
    *(
        Covered(
            phrase,
            flags="s" if phrase.startswith("npm") else "",
            long="--silent --if-present" if phrase.startswith("npm") else "",
            # `npm run env` prints the environment, whatever the package says.
            refused=r"env\Z|[@+]|[\w.-]+[+:?]?=",
            passes_on=True,
            shell_words=True,
            examples=(f"{phrase} x", f"{phrase} src/app.test.js", f"{phrase} unit:fast a-b,c"),
            counterexamples=(
                f"{phrase} '$(touch x)'",
                f"{phrase} 'a;touch x'",
                f"{phrase} 'a\ntouch x'",
                f"{phrase} 'a b'",
                f"{phrase} 'a*'",
                f"{phrase} env",
                f"{phrase} --script-shell=./x",
                f"{phrase} --script-s ./x",
                f"{phrase} -- --x",
                f"{phrase} --prefix x",
                f"{phrase} -C x",
            ),
        )
        for phrase in _RUNS_SCRIPTS
    ),
    *(
        Covered(
            f"{name} {word}",
            flags="al",
            long="--depth --json --all --long --parseable --omit --include",
            operands=0 if word == "audit" else -1,
        )
        for name, words in (
            ("npm", "ls list outdated view info show why explain root prefix ping audit"),
            ("yarn", "list outdated why info"),
        )
        for word in words.split()
    ),
    *(
        Covered(
            f"npm {word}",
            flags="DEOSPs",
            long="--save-dev --save-exact --save-optional --no-save --save --ignore-scripts --legacy-peer-deps "
            "--no-audit --no-fund --silent --prefer-offline --offline --omit",
            spelled=True,
            counterexamples=(f"npm {word} -g x", f"npm {word} --registry=x y", f"npm {word} --script-shell ./x"),
        )
        for word in ("install", "i", "ci", "add", "uninstall", "update")
    ),
    *(
        Covered(
            f"cargo {word}",
            flags="vqr",
            valued="pFj",
            long=_CARGO_LONG,
            refused=r"\+",
            passes_on=True,
            after="--nocapture --test-threads --ignored --include-ignored --exact --skip --show-output --list --check",
            spelled=word == "fmt",
            examples=(f"cargo {word} --release",),
            counterexamples=(
                f"cargo {word} --config x",
                f"cargo {word} -Zx",
                f"cargo {word} --manifest-path x",
                f"cargo {word} --target x.json",
                f"cargo {word} -- -Clinker=x",
            ),
        )
        for word in ("build", "check", "test", "clippy", "doc", "tree", "metadata", "bench", "fmt")
    ),
    Covered(
        "cargo",
        counterexamples=(
            "cargo --config x build",
            "cargo rustc",
            "cargo +nightly build",
            "cargo install x",
            "cargo run",
        ),
    ),
    *(
        Covered(
            f"go {word}",
            long=_GO_LONG,
            examples=(f"go {word} ./...", f"go {word} -v ./..."),
            counterexamples=(
                f"go {word} -exec ./x",
                f"go {word} -exec=./x",
                f"go {word} --toolexec=x",
                f"go {word} -ldflags -extld=x",
                f"go {word} -o x",
                f"go {word} -vettool=x",
                f"go {word} -overlay x",
                f"go {word} -modfile=x",
                f"go {word} -coverprofile=x",
                f"go {word} -C x",
            ),
        )
        for word in ("test", "build", "vet", "list", "version", "doc")
    ),
    Covered("go", counterexamples=("go generate", "go run x", "go tool x", "go env -w a=b", "go install x")),
    Covered(
        "make",
        flags="kinsqBwtpSrR",
        valued="jlO",
        long="--jobs --keep-going --dry-run --just-print --silent --quiet --question --always-make --print-directory "
        "--no-print-directory --output-sync --load-average --warn-undefined-variables --trace --touch",
        refused=r".*=",
        shell_words=True,
        examples=("make test", "make -j4 all", "make -k"),
        counterexamples=(
            "make 'html;touch x'",
            "make 'a b'",
            "make -j4 '$(shell touch x)'",
            "make -O'`touch x`'",
            "make -d x",  # the other make writes what it finds there into the file that follows
            "make SHELL=./x",
            "make -f x",
            "make --eval=x",
            "make CC=x",
            "make -C x",
            "make -I x",
            "make -E x",
        ),
    ),
    Covered(
        "pytest",
        flags="qvxslh",
        valued="kmnr",
        long="--quiet --verbose --exitfirst --maxfail --lf --last-failed --ff --failed-first --nf --sw --stepwise --tb "
        "--durations --durations-min --collect-only --co --no-header --no-summary --capture --showlocals --color "
        "--strict-markers --disable-warnings --markers --fixtures --cov --no-cov --numprocesses --timeout --deselect "
        "--ignore --ignore-glob --setup-show",
        shapes=r"--cov-report=term(-missing)?",
        refused="@",
        examples=("pytest -q", "pytest -k x -x", "pytest tests/a.py::b"),
        counterexamples=(
            "pytest -p x",
            "pytest --override-ini=x",
            "pytest -c x",
            "pytest -o x",
            "pytest --rootdir=x",
            "pytest --junitxml=x",
            "pytest --basetemp=x",
            "pytest --pdbcls=x:y",
            "pytest --pastebin=all",
            "pytest -W error::x.Y",
            "pytest --pyargs x",
            "pytest @x",
            "pytest --cov-report=html:x",
        ),
    ),
    Covered(
        "eslint",
        long="--quiet --max-warnings --ext --color --no-color --no-error-on-unmatched-pattern "
        "--report-unused-disable-directives",
        examples=("eslint src",),
        counterexamples=("eslint --fix x", "eslint -f ./x", "eslint -c x y", "eslint --rulesdir x", "eslint -o x y"),
    ),
    Covered(
        "prettier",
        flags="cl",
        long="--check --list-different --ignore-unknown --log-level --no-color",
        examples=("prettier --check x",),
        counterexamples=("prettier -w x", "prettier --write x", "prettier --plugin x y", "prettier --config x y"),
    ),
    *(
        Covered(
            f"pip {word}",
            flags="vq",
            long="--outdated --format --not-required --user --local --verbose --quiet --files --no-color",
            examples=(f"pip {word} x",),
            counterexamples=(f"pip {word} --log x", f"pip {word} --python x", f"pip {word} --path x"),
        )
        for word in ("list", "show", "freeze", "check")
    ),
    Covered("pip", counterexamples=("pip --log x list", "pip config set a b", "pip install x", "pip download x")),
    Covered(
        "docker ps",
        flags="aqls",
        valued="nf",
        long="--all --quiet --last --latest --no-trunc --size --format --filter",
        examples=("docker ps -a",),
        counterexamples=("docker -H x ps", "docker --context x ps", "docker ps -v"),
    ),
    Covered("docker images", flags="aq", valued="f", long="--all --quiet --no-trunc --format --filter --digests"),
    Covered("docker logs", flags="ft", valued="n", long="--follow --tail --since --until --timestamps"),
    Covered(
        "docker",
        counterexamples=("docker run x", "docker exec x y", "docker cp a b", "docker build .", "docker compose up"),
    ),
)

TABLE = (*_FILES, *_GIT, *_TOOLS)
