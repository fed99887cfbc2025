import pytest

from tests.policy.support import Workshop


@pytest.fixture(scope="session")
def shop(tmp_path_factory) -> Workshop:
    return Workshop.build(tmp_path_factory.mktemp("policy"))
