@FILE { file:///in/tool.py
Type{6}:	Python
Title{7}:	tool.py
File-Size{3}:	211
Last-Modification-Time{10}:	1000000000
MD5{32}:	8271244ebb014dd399c634cd417483b3
Description{48}:	A tool that does things to files, one at a time.
Keywords{13}:	Tool run wait
Comments{94}:	SPDX-License-Identifier: MIT
A tool that does things to files, one at a time.
not much
Run it.
Full-Text{210}:	#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A tool that does things to files, one at a time."""

class Tool:
    # not much
    def run(self, name):
        """Run it."""
    async def wait(self): pass
}
recognize	Python	name *.py	
summarize	5 attributes	Python	
