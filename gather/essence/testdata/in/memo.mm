.TL
On Swarms
.AU "Ada Flügel" AF
.AS 1
When swarms leave, and where they go.
.AE
.MT 4
.H 1 "Leaving"
.P
A swarm leaves on a warm day.
.HU "Settling"
.P
It settles on a branch.
