"""Words for programs that run scripts: whatever would mean something to a shell is not covered, plain words are."""

import shlex

import pytest

from tests.policy.support import allow, word

RULES = """\
npm test *
npm run build *
npm run-script build *
npm start *
npm exec eslint *
pnpm test *
pnpm run build *
pnpm exec eslint *
pnpm build *
yarn test *
yarn run build *
yarn run eslint *
yarn build *
bun run build *
bun test *
deno task build *
deno run build.ts *
just build *
task build *
make *
make html *
gmake html *
ninja html *
rake build *
bundle exec rake build *
composer test *
composer run-script test *
hatch run test *
hatch test *
pdm run test *
pdm run pytest *
poetry run lint *
uv run invoke build *
rye run test *
tox run *
nox run *
invoke build *
python -m invoke build *
gradle test *
./gradlew test *
mvn test *
cargo xtask *
cargo make build *
go generate *
docker compose logs *
git unheard-of *
./run.sh *
scripts/test.sh *
bash scripts/test.sh *
python scripts/build.py *
node scripts/build.js *
ruby scripts/build.rb *
perl scripts/build.pl *
mawk '{print $1}' *
mage build *
grunt build *
gulp build *
unheard-of *
less *
""".splitlines()
WHOLLY_TRIED = ("npm test *", "make *", "unheard-of *", "bash scripts/test.sh *", "hatch run test *")
HOSTILE = (
    *("$(touch x)", "a$(touch x)", "`touch x`", "$x", "${x}", "$'x'", "a;touch x", ";", "a&touch", "a&&touch", "&"),
    *("a|touch", "|", "a||touch", "touch x|", "<a.txt", ">a.txt", "a>b", "a<b", "<(touch)", "(touch)", "a)", "("),
    *("{a,b}", "a{1..3}", "}", "a*", "*", "a?", "[a]", "a[b]", "\\", "a\\b", "a\\", "'", "a'b", '"', 'a"b', "a'$(x)'"),
    *("a\nb", "\n", "a\n", "a\ttouch", "a b", " ", "a ", " a", "#", "#a", "a#b", "!", "!!", "a!b", "~", "~root", "a~"),
    *("^a^b", "a^", "", "=ls", "a\n--evil", "a --evil", "$@", "$*", "$(shell touch x)", "{{x}}", "a\u3000b"),
)
ORDINARY = ("unit", "src/app.test.js", "./src", "a-b_c.d", "v1.2.3", "a,b", "100%", "a+b", "user@host", "größe", "2")
WITH_OPTIONS = {
    "make -j4 html": "make *",
    "make -k -j 4 all": "make *",
    "npm test --silent unit": "npm test *",
    "npm run build --if-present src": "npm run build *",
    "less -N a.txt": "less *",
}


@pytest.mark.parametrize("rule", RULES)
def test_words_that_mean_something_to_a_shell_are_not_covered(shop, rule):
    policy = shop.policy(allow(rule))
    hostile = HOSTILE if rule in WHOLLY_TRIED else HOSTILE[::9]
    lines = [f"{rule.removesuffix('*')}{shlex.quote(text)}" for text in hostile]
    lines += [f"{rule.removesuffix('*')}a {shlex.quote(text)}" for text in hostile[::5]]
    assert [line for line in lines if word(policy.judge(shop.line(line))) != "ask"] == []


@pytest.mark.parametrize("rule", RULES)
def test_plain_words_are_covered(shop, rule):
    policy = shop.policy(allow(rule))
    lines = [
        f"{rule.removesuffix('*')}{shlex.quote(plain)}"
        for plain in (ORDINARY if rule in WHOLLY_TRIED else ORDINARY[::4])
    ]
    assert [line for line in lines if word(policy.judge(shop.line(line))) != "allow"] == []


@pytest.mark.parametrize(("line", "rule"), WITH_OPTIONS.items())
def test_plain_words_among_known_options_are_covered(shop, line, rule):
    assert word(shop.policy(allow(rule)).judge(shop.line(line))) == "allow"


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("pytest *", "pytest -k 'fast and not slow' 'tests/test_a.py::test_b[1-2]'"),
        ("uv run pytest *", "uv run pytest -k 'fast or slow'"),
        ("poetry run pytest *", "poetry run pytest -m 'not slow'"),
        ("python -m pytest *", "python -m pytest 'tests/test_a.py::test_b[x]'"),
        ("go test *", "go test -run '^Test(A|B)$' ./..."),
        ("cargo test *", "cargo test 'a::b<c>'"),
        ("eslint *", "eslint 'src/**/*.ts'"),
        ("prettier *", "prettier --check 'src/**/*.{js,ts}'"),
        ("git commit *", "git commit -m 'Say `x`; then $(y) & \"z\"'"),
        ("git log *", "git log --grep='a|b' --format='%h (%s)'"),
        ("grep *", "grep -rn 'a|b$' src"),
        ("find *", "find . -name '*.py'"),
        ("echo *", "echo 'a; b'"),
        ("docker ps *", "docker ps --format '{{.Names}}'"),
    ],
)
def test_a_program_that_is_known_to_ask_no_shell_gets_any_words(shop, rule, line):
    assert word(shop.policy(allow(rule)).judge(shop.line(line))) == "allow"


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("docker compose *", "docker compose exec app sh"),
        ("docker compose -f a.yml *", "docker compose -f a.yml run app sh"),
        ("docker container *", "docker container exec app sh"),
        ("cmake -E *", "cmake -E env sh a.sh"),
        ("yarn workspace app *", "yarn workspace app exec a.sh"),
        ("npm explore *", "npm explore react sh"),
        ("npm config *", "npm config set script-shell a.sh"),
        ("ssh-agent *", "ssh-agent sh a.sh"),
        ("chronic *", "chronic sh a.sh"),
        ("watchexec *", "watchexec sh a.sh"),
        ("irb *", "irb a.rb"),
    ],
)
def test_words_that_name_what_is_run_are_not_covered(shop, rule, line):
    assert word(shop.policy(allow(rule)).judge(shop.line(line))) == "ask"
    assert word(shop.policy(allow(line)).judge(shop.line(line))) == "allow"


@pytest.mark.parametrize("runner", ["hatch run", "pdm run", "poetry run", "uv run", "bun run", "rye run", "yarn run"])
def test_a_script_with_the_name_of_a_program_gets_no_options(shop, runner):
    """A script `test` may well be `pytest`, and `-p x` loads a module there."""
    policy = shop.policy(*(allow(f"{runner} {name} *") for name in ("test", "tree", "echo", "pytest")))
    assert word(policy.judge(shop.line(f"{runner} test fast"))) == "allow"
    assert word(policy.judge(shop.line(f"{runner} pytest -q"))) == "allow"
    for line in ("test -p evil", "test -x", "tree -a", "echo --x", "test SHELL=x", "test @x"):
        assert word(policy.judge(shop.line(f"{runner} {line}"))) == "ask", line


def test_an_always_for_such_words_remembers_them_exactly(shop):
    policy = shop.policy()
    asked = policy.judge(shop.line("npm test 'a b'"))
    policy.remember(asked.session, "session")
    assert asked.session.label == "Allow `npm test 'a b'` for this session"
    assert word(policy.judge(shop.line("npm test 'a b'"))) == "allow"
    assert word(policy.judge(shop.line("npm test a"))) == "ask"
