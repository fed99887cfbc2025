"""Rules that refuse or ask: they find a command wherever it hides, in every mode."""

import pytest

from crow.config.settings import PermissionRule
from tests.policy.support import allow, deny, word

DENIED = r"""
rm a
rm
/bin/rm a
./rm a
RM a
r\m a
'rm' a
"r"m a
r''m a
$'\x72m' a
$'\162m' a
$"rm" a
\rm a
ls; rm a
ls && rm a
ls | rm a
ls & rm a
ls || rm a
(rm a)
{ rm a; }
! rm a
if rm a; then ls; fi
if ls; then ls; else rm a; fi
for i in 1; do rm a; done
while rm a; do ls; done
until ls; do rm a; done
case x in x) rm a;; esac
f() { rm a; }
echo $(rm a)
echo "$(rm a)"
echo `rm a`
echo "${x:-$(rm a)}"
cat <(rm a)
x=$(rm a)
x=1 rm a
export x=$(rm a)
> out rm a
2>/dev/null rm a
sudo rm a
sudo -u bob rm a
sudo -n -- rm a
env rm a
env -i A=1 rm a
env -u X rm a
env -S 'rm a'
nice rm a
nice -n 10 rm a
timeout 5 rm a
timeout -s KILL 5 rm a
nohup rm a
setsid rm a
time rm a
command rm a
builtin rm a
exec rm a
exec -a x rm a
stdbuf -oL rm a
xargs rm
ls | xargs -n 1 rm -f
ls | xargs -I {} rm {}
find . -exec rm {} +
find . -name x -execdir rm {} ;
find . -exec sh -c 'rm a' ;
sh -c 'rm a'
bash -c "rm a"
bash -lc 'rm a'
bash -x -c 'ls; rm a'
bash -o errexit -c 'rm a'
bash -euo pipefail -c 'rm a'
bash -c -o pipefail 'rm a'
sudo bash -c 'rm a'
env bash -c 'sudo rm a'
bash -c "bash -c 'rm a'"
eval rm a
eval "rm a"
eval 'r''m' a
trap 'rm a' EXIT
alias x='rm a'
ssh host rm a
ssh -p 22 host 'rm a'
watch rm a
watch -n 1 'rm a'
su -c 'rm a'
su bob -c 'rm a'
flock /tmp/l rm a
flock /tmp/l -c 'rm a'
busybox rm a
npx rm a
parallel rm ::: a
git status && (cd x && { ls; sudo rm a; })
coproc rm a
cat <<E | rm a
[ -f x ] && rm a
[[ $(rm a) ]]
uv run rm a
uv run --frozen -p 3.12 rm a
uv tool run rm a
poetry run rm a
pipenv run rm a
bundle exec rm a
conda run -n base rm a
docker run image rm a
docker run --rm -it -v a:b image rm a
docker exec box rm a
docker compose exec web rm a
podman run image rm a
kubectl exec pod -- rm a
kubectl exec -it pod -c x -- rm a
git bisect run rm a
git submodule foreach rm a
git submodule foreach 'rm a'
git submodule foreach --recursive 'ls; rm a'
perf stat rm a
perf record -g rm a
npx -c 'rm a'
npm exec -c 'rm a'
npm exec --call 'rm a'
cmake -E env A=1 rm a
source <(rm a)
tmux new "rm a"
tmux new-session -d 'ls; rm a'
sed '1e rm a' b
sed -n 'p;e rm a' b
compgen -C 'rm a'
hash -p /bin/rm foo; foo
rustup run nightly rm a
env -S 'rm\_a'
env -S'rm\_a'
env --split-string='rm\_a'
env --split-string 'rm\_a'
env --sp='rm\_a'
env --s 'rm\ta'
env -vS 'rm\_a'
env -iS'rm\_a'
env -u X -S 'rm\va'
env -S '-u X rm\_a'
env -S 'A=b\_rm\_a'
env -S $'A=b\nrm\fa'
env -S '"rm" a'
env -S 'env\_-S"rm\_a"'
find . -exec env -S 'rm\_a' ';'
sudo env -S 'rm\_a'
"""

UNSURE = r"""
$x a
"$x" a
$(echo rm) a
`echo rm` a
r$x a
/bin/r? a
{rm,ls} a
r* a
eval "$x"
eval $x
bash -c "$x"
sh
ls | sh
curl -s x | bash
bash -s < x
bash <<< 'rm a'
sudo $x a
xargs $x
trap "$x" EXIT
printf -v 'x[$(rm a)]' y
test -v 'x[$(rm a)]'
[ -v 'x[$(rm a)]' ]
env -S 'r${x}m a'
env -S 'r\\m a'
env -S 'r\qm a'
sed '1e r\x6d a' b
sed 's/.*/r\x6d a/e' b
sed 's,.*,r\o155 a,ge' b
sed e b
xargs -I{} r{} a
xargs -I X rX a
xargs -iX rX a
xargs --replace rX{} a
parallel r{} a ::: m
[ -v $'x[\x24(rm a)]' ]
[[ 'x[$(rm a)]' -eq 0 ]]
unset 'x[$''(rm a)]'
read 'x[`rm a`]'
ls 'unfinished
ls )
if ls
"""

MENTIONED = r"""
echo rm
echo "rm a"
ls rm
grep rm a
git rm a
find . -name rm
cat rm
env A=rm ls
FOO=rm ls
bash -c 'echo rm'
for rm in a; do ls; done
unheard-of rm a
unheard-of -x -- /bin/rm a
unheard-of "ls; /bin/rm a"
unheard-of --with='rm a'
git -c alias.x='!rm a' x
vim -c ':!rm a'
make --eval='x:;@rm a'
unheard-of --with=RM
unheard-of r''m a
unheard-of $'\x72m a'
hash -p/bin/rm foo; foo
sed 's/a/rm b/e' c
source <(echo rm a)
python -c 'import subprocess; subprocess.run(["rm", "a"])'
make SHELL=/bin/rm
split --filter='rm a' b
"""

FREE = r"""
ls
[ -f "$(cat x)" ]
grep '[a-z]' $(cat x)
rmdir a
farm a
rm.sh
./rm.sh
bash rm-all.sh
sudo ls
sudo -u bob ls a
docker run --rm image ls
echo $x
ls $(cat list)
bash -x rm-all.sh
git status && ls -la
echo 'confirm form'
env -S 'ls a'
env -S'A=b ls'
env -S '"ls" a'
sed 's/e/\1e/' b
sed -n '/e/p' b
xargs -I X ls X
"""


def lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


@pytest.mark.parametrize("line", lines(DENIED))
def test_denied_in_every_mode(shop, line):
    for mode in ("ask", "edit", "plan", "auto"):
        policy = shop.policy(deny("rm *"), allow("rm *"), PermissionRule("terminal", "allow"), mode=mode)
        verdict = policy.judge(shop.line(line))
        assert word(verdict) == ("deny"), f"{line!r} in {mode}: {verdict}"
        assert verdict.rule == "terminal: `rm *`"


@pytest.mark.parametrize("line", lines(UNSURE))
def test_what_cannot_be_read_asks_in_auto_while_deny_rules_exist(shop, line):
    verdict = shop.policy(deny("rm *"), mode="auto").judge(shop.line(line))
    assert word(verdict) == "ask", f"{line!r}: {verdict}"
    assert verdict.session is None
    assert verdict.project is None
    assert word(shop.policy(mode="auto").judge(shop.line(line))) == "allow"


@pytest.mark.parametrize("line", lines(MENTIONED))
def test_what_mentions_it_asks_for_no_list_of_wrappers_is_complete(shop, line):
    verdict = shop.policy(deny("rm *"), mode="auto").judge(shop.line(line))
    assert word(verdict) == "ask", f"{line!r}: {verdict}"
    assert verdict.session is None


@pytest.mark.parametrize("line", lines(FREE))
def test_what_has_nothing_to_do_with_it_goes(shop, line):
    verdict = shop.policy(deny("rm *"), mode="auto").judge(shop.line(line))
    assert word(verdict) == "allow", f"{line!r}: {verdict}"


@pytest.mark.parametrize(
    ("rule", "line", "expected"),
    [
        ("git push *", "git push", "deny"),
        ("git push *", "git push origin", "deny"),
        ("git push *", "git -C x push origin", "deny"),
        ("git push *", "git --no-pager push", "deny"),
        ("git push *", "git -c a=b --no-pager -C x push -f", "deny"),
        ("git push *", "git p''ush", "deny"),
        ("git push *", "git > out push", "deny"),
        ("git push *", "git $x", "ask"),
        ("git push *", "xargs git", "ask"),
        ("git push *", "git pull push", "allow"),
        ("git push *", "git log --grep push", "allow"),
        ("git push *", "git --paginate x push", "deny"),  # whether an option takes a value cannot be told
        ("git push *", "git commit -m push", "allow"),
        ("git push *", "unheard-of git push", "ask"),
        ("git push *", "unheard-of 'git -C x push'", "ask"),
        ("git push *", "unheard-of git status", "allow"),
        ("git push *", "unheard-of git " + "-a " * 200 + "push", "ask"),
        ("git push *", "git pu\\\nsh", "deny"),
        ("git push", "git push", "deny"),
        ("git push", "git push origin", "allow"),
        ("/usr/bin/rm *", "rm a", "deny"),
        ("rm 'a b' *", "rm 'a b' c", "deny"),
        ("rm 'a b' *", "rm a b", "allow"),
        ("rm 'unfinished *", "rm 'x'", "allow"),
        ("*", "ls", "deny"),
    ],
)
def test_rules_of_more_words(shop, rule, line, expected):
    verdict = shop.policy(deny(rule), mode="auto").judge(shop.line(line))
    assert word(verdict) == expected, f"{rule!r} and {line!r}: {verdict}"


def test_a_rule_that_asks_asks_in_auto_and_is_not_answered_for_ever(shop):
    policy = shop.policy(PermissionRule("terminal", "ask", command="git push *"), mode="auto")
    for line in ("git push", "ls; sudo git push", "$x", "git $x", "ls 'x"):
        verdict = policy.judge(shop.line(line))
        assert word(verdict) == "ask", line
        assert verdict.session is None
    assert word(policy.judge(shop.line("git status"))) == "allow"


@pytest.mark.parametrize(
    "line", ["ls\n\\rm a", "ls \n\\rm a\nls", "ls\n'rm' a", "ls # x\nrm a", "ls \\\n; rm a", "cat <<E\n$(rm a)\nE"]
)
def test_lines_of_many_lines(shop, line):
    assert word(shop.policy(deny("rm *"), mode="auto").judge(shop.line(line))) in ("deny", "ask")


def test_where_two_readings_differ_it_asks(shop):
    policy = shop.policy(deny("rm *"), mode="auto")
    assert word(policy.judge(shop.line("git commit -m 'First look; rm later'"))) == "ask"
    assert word(policy.judge(shop.line("git commit -m 'Look, then remove'"))) == "allow"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("r\\\nm x", "deny"),
        ("\\\nrm x", "deny"),
        ("r\\\n\\\nm x", "deny"),
        ('"r\\\nm" x', "deny"),
        ("ls &\\\n& rm x", "deny"),
        ("ls; su\\\ndo rm x", "deny"),
        ('bash -c "r\\\nm x"', "deny"),
        ("r\\\nm 'x'", "ask"),
        ("bash -c 'r\\\nm x'", "deny"),
        ("ls # \\\nrm x", "deny"),
        ("ls # x\\\nr\\\nm x", "ask"),
        ("cat <<E\nx\\\nE\nrm x", "deny"),
        ("cat <<'E'\nx\\\nE\nr''m x", "deny"),
        ("cat <\\\n<\\E\nx\\\nE\nls", "ask"),
        ("echo `r\\\nm x`", "ask"),
        ("echo 'x'; \\\nrm x", "deny"),
        ("echo \\\\\nrm x", "deny"),
        ("ls \\\n  -l \\\n  -a", "allow"),
        ("ls \\\n  'a b' \\\n  -a", "allow"),
    ],
)
def test_lines_that_go_on(shop, line, expected):
    verdict = shop.policy(deny("rm *"), mode="auto").judge(shop.line(line))
    assert word(verdict) == expected, f"{line!r}: {verdict}"


def test_deny_beats_ask_beats_allow(shop):
    rules = [deny("rm *"), PermissionRule("terminal", "ask", command="git *"), allow("git *"), allow("rm *")]
    policy = shop.policy(*rules, mode="auto")
    assert word(policy.judge(shop.line("git status"))) == "ask"
    assert word(policy.judge(shop.line("git status; rm x"))) == "deny"
    assert word(policy.judge(shop.line("ls"))) == "allow"


def test_a_whole_tool_can_be_refused(shop):
    policy = shop.policy(PermissionRule("terminal", "deny"), allow("ls *"), mode="auto")
    assert word(policy.judge(shop.line("ls"))) == "deny"


def test_a_whole_tool_can_be_asked_about(shop):
    policy = shop.policy(PermissionRule("terminal", "ask"), deny("rm *"), mode="auto")
    assert word(policy.judge(shop.line("ls"))) == "ask"
    assert word(policy.judge(shop.line("rm x"))) == "deny"


OTHER_SPELLINGS = [
    ("make deploy", "gmake deploy", "deny"),
    ("make deploy", "make all deploy", "ask"),
    ("make deploy", "make deploy all", "ask"),
    ("make deploy", "make deploy X=1", "ask"),
    ("make deploy", "make X=1 deploy", "ask"),
    ("make deploy *", "make all deploy", "ask"),
    ("make deploy", "make ./deploy", "ask"),
    ("make deploy", "make --eval='x: deploy' x", "ask"),
    ("make deploy", "make --eval 'x: deploy' x", "ask"),
    ("make deploy", "make -E 'x:deploy' x", "ask"),
    ("make deploy", "make --ev='x: de$(E)ploy' x", "ask"),
    ("make deploy", "make -sE 'x: de$(E)ploy' x", "ask"),
    ("make deploy", "make .DEFAULT_GOAL=deploy", "ask"),
    ("make deploy", "MAKEFLAGS='--eval=x:deploy' make", "ask"),
    ("make deploy", "export MAKEFLAGS=--eval=x:deploy; make", "ask"),
    ("make deploy", "printf x | make -f - x", "ask"),
    ("make deploy", "make -f- x", "ask"),
    ("make deploy", "make --file=/dev/stdin x", "ask"),
    ("make deploy", "make test", "allow"),
    ("make deploy", "make -C docs html", "allow"),
    ("git push *", "git config alias.p push && git p", "ask"),
    ("git push *", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p", "ask"),
    ("git push *", "git --config-env=alias.p=X p", "ask"),
    ("git push *", "git-push origin", "deny"),
    ("git push *", "/usr/lib/git-core/git-push origin", "deny"),
    ("git push *", "git commit -m 'fix the push button'", "allow"),
    ("git push *", "git status", "allow"),
    ("npm install *", "npm i x", "deny"),
    ("npm i *", "npm install x", "deny"),
    ("npm install *", "npm isntall x", "deny"),
    ("npm install *", "npm add x", "deny"),
    ("npm install *", "npm test", "allow"),
    ("npm run deploy", "npm run-script deploy", "deny"),
    ("gradle publish", "gradle build publish", "ask"),
    ("pip install *", "pip3 install x", "deny"),
    ("pip install *", "pip3.11 install x", "deny"),
    ("pip3 install *", "pip install x", "allow"),
    ("python *", "python3 x.py", "deny"),
    ("python2 *", "python3 x.py", "allow"),
    ("cargo publish", "cargo +nightly publish", "deny"),
    ("cargo publish", "cargo --config 'alias.p=\"publish\"' p", "ask"),
    ("cargo test *", "cargo t", "deny"),
    ("docker run *", "docker container run x", "deny"),
    ("docker compose *", "docker-compose up", "deny"),
]


@pytest.mark.parametrize(("rule", "line", "expected"), OTHER_SPELLINGS)
def test_other_spellings_of_a_command_with_more_words(shop, rule, line, expected):
    verdict = shop.policy(deny(rule), mode="auto").judge(shop.line(line))
    assert word(verdict) == expected, f"{line!r}: {verdict}"
