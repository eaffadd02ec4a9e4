#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A tool that does things to files, one at a time."""

class Tool:
    # not much
    def run(self, name):
        """Run it."""
    async def wait(self): pass
