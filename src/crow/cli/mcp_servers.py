"""`crow mcp list` and `crow mcp test`: the MCP servers of the user's configuration, and whether they work."""

import os
import sys

from crow.cli.health_mcp import check_of, shown_settings, try_servers
from crow.config.home import config_path, home
from crow.config.load import load_settings
from crow.errors import CrowError
from crow.mcp.using.wanted import shown_name


def list_servers() -> int:
    place = home(os.environ)
    servers = load_settings(place).mcp_servers
    if not servers:
        print(f"There are no MCP servers in {config_path(place)}. Your editor and projects may bring some: /mcp says.")
    width = max((len(shown_name(name)) for name in servers), default=0)
    for name, settings in servers.items():
        print(f"{shown_name(name):<{width}}  {shown_settings(settings)}")
    return 0


def test_servers(name: str | None) -> int:
    """Starts one server, or all; 1 if one of them does not work."""
    place = home(os.environ)
    settings = load_settings(place)
    servers = settings.mcp_servers
    if name is not None and name not in servers:
        others = f"There is: {', '.join(servers)}." if servers else "There are none at all."
        raise CrowError(f"There is no MCP server {name} in your config.toml. {others}")
    wanted = servers if name is None else {name: servers[name]}
    if not wanted:
        return list_servers()
    status = 0
    for server in try_servers(wanted, settings.limits, place):
        check = check_of(server, wanted[server.name], place)
        if check.outcome == "fine":
            print(f"{check.text}:")
            for tool, cost in server.tools:
                print(f"  {tool}  (about {cost:,} tokens in every request)")
        else:
            status = 1
            print("\n  ".join([f"crow: {check.text}", *check.remedy.splitlines()]), file=sys.stderr)
    return status
