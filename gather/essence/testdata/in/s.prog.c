h12178
s 00001/00000/00002
d D 1.2 97/03/01 22:35:40 maria 2 1
c add a third line
e
s 00002/00000/00000
d D 1.1 97/03/01 22:35:40 maria 1 0
c first delta of it
e
u
U
f e 0
t
T
I 1
one %I%
two
E 1
I 2
three
E 2
