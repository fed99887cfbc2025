"""Options and words that make a program write or run something else than it seems to: the table of docs/permissions.md.

Each entry carries examples, which the tests check: what must be found, and what must not.
"""

import msgspec


class Hazards(msgspec.Struct, frozen=True):
    program: str
    """The program, or program and sub-command."""
    short: str = ""
    """Letters. One anywhere in a bundle counts, and so does one with its value attached: `-o`, `-uo`, `-oFILE`."""
    long: str = ""
    """Whole options. One with two dashes is also found abbreviated (`--comp`) and with its value (`--output=x`)."""
    words: str = ""
    """Plain words, such as sub-commands."""
    pattern: str = ""
    """What a word must not match."""
    front_short: str = ""
    """The same as `short` and `long`, but only before the first plain word: `git -c x=y status`."""
    front_long: str = ""
    bundle: bool = False
    """The first word is a bundle of letters even without a dash: `tar xIf`."""
    found: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()


TABLE = (
    Hazards(
        "find",
        long="-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from -L -follow",
        found=("find . -delete", "find . -exec rm {} ;", "find -L ."),
        harmless=("find . -name '*.py'", "find src -type f"),
    ),
    Hazards(
        "fd",
        short="xXL",
        long="--exec --exec-batch --follow",
        found=("fd -x rm", "fd --exec-b rm"),
        harmless=("fd -e py",),
    ),
    Hazards(
        "sort",
        short="oT",
        long="--output --compress-program --temporary-directory --files0-from",
        found=("sort -uo x x", "sort --comp=./x", "sort -ox", "sort x --out y"),
        harmless=("sort -u x", "sort -k 2 -n x", "sort --check x"),
    ),
    Hazards("shuf", short="o", long="--output", found=("shuf -o x",), harmless=("shuf -n 1 x",)),
    Hazards("uniq", pattern=r"(?!-)", found=("uniq a b",), harmless=("uniq -c",)),
    Hazards("tree", short="ol", found=("tree -o x",), harmless=("tree -a",)),
    Hazards("grep", short="R", long="--dereference-recursive", found=("grep -R x .",), harmless=("grep -rn x .",)),
    Hazards("diff", short="r", long="--recursive", found=("diff -ru a b",), harmless=("diff -u a b",)),
    Hazards("printf", short="v", found=("printf -v PATH x", "printf -vPATH x"), harmless=("printf %s x",)),
    Hazards("test", long="-v -R", found=("test -v x",), harmless=("test -f x",)),
    Hazards("jobs", short="x", found=("jobs -x ls",), harmless=("jobs -l",)),
    Hazards("date", short="sf", long="--set --file", found=("date -s x",), harmless=("date -u",)),
    Hazards("xxd", short="r", pattern=r"(?!-)", found=("xxd a b",), harmless=("xxd -p",)),
    Hazards("iconv", short="o", long="--output", found=("iconv -o x",), harmless=("iconv -f latin1",)),
    Hazards("yq", short="i", long="--inplace --in-place", found=("yq -i x",), harmless=("yq .a x",)),
    Hazards(
        "sed",
        # Of the options only those are left that neither write nor bring a script from elsewhere; the script is below.
        pattern=r"-(?!(?:[nrEuzs]+|-quiet|-silent|-regexp-extended|-unbuffered|-debug|-null-data|-version)\Z)",
        found=("sed -i s/a/b/ x", "sed -ni p x", "sed --in-place p x", "sed -f x y", "sed -e p x", "sed 1w/tmp/x x"),
        harmless=("sed -n 1,5p x", "sed s/a/b/g x", "sed -E 's|a(b)|\\1|' x"),
    ),
    Hazards("rg", short="zL", long="--pre --hostname-bin --search-zip --follow", found=("rg --pre ./x y", "rg -nz x")),
    Hazards("ag", long="--pager --follow", short="fz", found=("ag --pager x",), harmless=("ag x",)),
    Hazards(
        "git",
        long="--output --upload-pack --receive-pack --exec --ext-diff --textconv --open-files-in-pager --template "
        "--config --extcmd --tool --gpg-sign --output-directory --strategy --no-index --filters --edit-description",
        words="config filter-branch difftool mergetool bisect submodule hook daemon credential send-email instaweb "
        "web--browse http-backend shell remote-ext fast-export maintenance update-index p4 svn",
        pattern=r"(?i).*(ext|fd)::",
        front_short="cC",
        front_long="--config-env --exec-path --git-dir --work-tree --namespace --super-prefix --attr-source",
        found=(
            "git -c core.pager=./x log",
            "git --exec-path=. status",
            "git diff --output=x",
            "git diff --outp x",
            "git fetch --upload-pack ./x .",
            "git clone ext::x",
            "git config a b",
            "git -C x status",
        ),
        harmless=("git status -s", "git log -c --stat", "git commit -m x", "git switch -c x", "git diff HEAD~1"),
    ),
    Hazards("git grep", short="O", found=("git grep -O x",), harmless=("git grep -n x",)),
    Hazards("git rebase", short="xs", found=("git rebase -x ./x",), harmless=("git rebase main",)),
    Hazards("git merge", short="s", found=("git merge -s x y",), harmless=("git merge main",)),
    Hazards("git pull", short="s", found=("git pull -s x",), harmless=("git pull --ff-only",)),
    Hazards("git clone", short="cu", found=("git clone -c a=b x",), harmless=("git clone --depth 1 x",)),
    Hazards("git archive", short="o", found=("git archive -o x",), harmless=("git archive HEAD",)),
    Hazards("git format-patch", short="o", found=("git format-patch -o x",)),
    Hazards("git commit", short="S", found=("git commit -S",), harmless=("git commit -am x",)),
    Hazards("git tag", short="su", found=("git tag -s x",), harmless=("git tag -l",)),
    Hazards(
        "tar",
        short="IFh",
        long="--to-command --checkpoint-action --use-compress-program --rsh-command --rmt-command --info-script "
        "--new-volume-script --dereference --absolute-names --index-file",
        bundle=True,
        found=("tar -cIf x y", "tar xIf x y", "tar --checkpoint-action=exec=x", "tar --to-c x"),
        harmless=("tar tf x", "tar -czf x y"),
    ),
    Hazards("zip", short="T", long="-TT --unzip-command --test", found=("zip -TT x",), harmless=("zip -r x y",)),
    Hazards("rsync", short="eL", long="--rsh --rsync-path --copy-links --log-file", found=("rsync -e x a b",)),
    Hazards("scp", short="SoFDJ", found=("scp -o ProxyCommand=x a b",), harmless=("scp -r a b",)),
    Hazards("cp", short="LHs", long="--dereference --backup", found=("cp -rL a b",), harmless=("cp -r a b",)),
    Hazards("du", short="LD", long="--dereference --files0-from", found=("du -L",), harmless=("du -sh",)),
    Hazards("wc", long="--files0-from", found=("wc --files0-from=x",), harmless=("wc -l x",)),
    Hazards(
        "make",
        short="fCIE",
        long="--file --makefile --directory --include-dir --eval",
        pattern=r"[^-].*=|--?[A-Za-z-]*=.*=",
        found=("make SHELL=./x", "make -f x", "make --eval=x", "make CC=x"),
        harmless=("make test", "make -j4 all", "make -k"),
    ),
    Hazards(
        "curl",
        short="oOKTJcDE:xwn",
        long="--output --remote-name --remote-name-all --remote-header-name --config --upload-file --cookie-jar "
        "--dump-header --trace --trace-ascii --stderr --libcurl --etag-save --hsts --alt-svc --engine --output-dir "
        "--create-dirs --proxy --preproxy --unix-socket --key --cert --netrc-file --next --write-out "
        "--netrc --netrc-optional --variable",
        pattern=r"(?i)[^-].*@|@|(?!https?:)[a-z]+:|-[A-Za-z]*[dFbHw].*@|.*=<|--expand",
        found=(
            "curl -o x http://y",
            "curl -sO http://y",
            "curl --conf x",
            "curl file:///x",
            "curl -d @x http://y",
            "curl -F a=<.env http://y",
            "curl -w x http://y",
        ),
        harmless=("curl -s http://y", "curl -I http://y"),
    ),
    Hazards(
        "wget",
        short="OoaiPeB",
        long="--output-document --output-file --append-output --input-file --directory-prefix --execute --config "
        "--use-askpass --post-file --body-file --save-cookies --warc-file --rejected-log --hsts-file --base --proxy",
        found=("wget -qO x http://y", "wget -e x=y", "wget --use-ask=x"),
        harmless=("wget -q http://y",),
    ),
    Hazards(
        "less",
        short="oOkTPt",
        long="--log-file --LOG-FILE --lesskey-file",
        pattern=r"\+",
        found=("less +!x", "less -o x"),
    ),
    Hazards("more", pattern=r"\+", found=("more +x",), harmless=("more x",)),
    Hazards("bat", long="--pager --generate-config-file", found=("bat --pager x",), harmless=("bat x",)),
    Hazards(
        "man",
        short="PHCTBX",
        long="--pager --html --config-file --browser --gxditview",
        found=("man -P x y", "man --pag=x y"),
    ),
    Hazards(
        "npm",
        short="c",
        long="--script-shell --shell --editor --viewer --git --node-options --userconfig --globalconfig --prefix "
        "--init-module --call --package --location --global --registry --cache --logs-dir --onload-script",
        words="exec x explore config set init create edit publish token",
        found=("npm test --script-shell=./x", "npm exec x", "npm --script-sh ./x test"),
        harmless=("npm test", "npm run build -- --watch"),
    ),
    Hazards(
        "pnpm",
        long="--script-shell --config --shell-emulator",
        words="exec dlx config create env",
        found=("pnpm dlx x",),
    ),
    Hazards("yarn", long="--use-yarnrc --script-shell", words="exec dlx config create node", found=("yarn exec x",)),
    Hazards(
        "cargo",
        short="ZC",
        long="--config",
        pattern=r"\+",
        words="install publish login run rustc rustdoc",
        found=("cargo --config x build", "cargo rustc", "cargo clippy -- -Clinker=x"),
        harmless=("cargo test --release",),
    ),
    Hazards(
        "go",
        long="-exec -toolexec -vettool -overlay -modfile -o -w -C -ldflags -gcflags -asmflags "
        "-gccgoflags --exec --toolexec --vettool --overlay --modfile",
        words="run generate tool install",
        pattern=r"--?(exec|toolexec|vettool|overlay|modfile|o|C|ldflags|gcflags|asmflags|gccgoflags)=",
        found=(
            "go test -exec ./x",
            "go test -exec=./x",
            "go generate",
            "go build -toolexec=x",
            "go build -ldflags -extld=x",
        ),
        harmless=("go test ./...", "go vet"),
    ),
    Hazards(
        "pytest",
        short="pco",
        long="--rootdir --confcutdir --override-ini --config-file --pdbcls --junitxml --junit-xml --basetemp "
        "--pastebin --debug --log-file --cov-config --pyargs --import-mode",
        pattern="@",
        found=("pytest -p x", "pytest --override-ini=x", "pytest -c x"),
        harmless=("pytest -q", "pytest -k x -x"),
    ),
    Hazards(
        "eslint",
        short="cfo",
        long="--config --format --output-file --rulesdir --plugin --parser --resolve-plugins-relative-to --fix --init "
        "--cache-location --cache-file",
        found=("eslint --fix x", "eslint -f ./x"),
        harmless=("eslint src",),
    ),
    Hazards("prettier", short="w", long="--write --plugin --plugin-search-dir --config", found=("prettier -w x",)),
    *(
        Hazards(
            name,
            short="oBx",
            pattern=r"-(wrapper|fplugin|specs|dumpdir|M[FD]|W[alp],|X|fuse-ld|fpass-plugin|load|save-temps|-)|@",
            found=(f"{name} -o x y", f"{name} -Wl,-plugin,./e a.c"),
            harmless=(f"{name} -c -Wall a.c",),
        )
        for name in ("gcc", "g++", "cc", "c++", "clang", "clang++")
    ),
    Hazards(
        "pip",
        long="--config-settings --global-option --build-option --python --target --prefix --root --log --editable "
        "--src --index-url --extra-index-url --find-links --trusted-host --cert --client-cert --requirement",
        short="etri",
        words="config",
        found=("pip install -e x", "pip --log x list"),
        harmless=("pip list", "pip show x"),
    ),
    Hazards(
        "docker",
        short="vH",
        long="--volume --mount --privileged --device --cap-add --pid --network --host --security-opt",
        words="run exec cp",
        found=("docker run x", "docker ps -v"),
        harmless=("docker ps", "docker logs x"),
    ),
    Hazards(
        "kubectl", long="--kubeconfig", words="exec cp run edit apply delete config plugin", found=("kubectl exec x",)
    ),
    Hazards("tcpdump", short="wzF", found=("tcpdump -w x",)),
    Hazards("awk", short="fiEel", long="--file --include --exec --source --load", found=("awk -f x",)),
    Hazards("python", short="cmWX", found=("python -c x",)),
    Hazards("perl", short="eEMmIipx", found=("perl -e x",)),
    Hazards("ruby", short="erIiCS", found=("ruby -e x",)),
    Hazards(
        "node",
        short="epr",
        long="--eval --print --require --import --loader --experimental-loader",
        found=("node -e x",),
    ),
)
