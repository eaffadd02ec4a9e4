package essence

// commonWords are words that are in many English texts, whatever they are about.
// They were counted in 3,354 documents of five kinds (pages of the web, the Python
// manual, Java's, manual pages, README and NEWS files), each kind counting the same, and are
// in more than 2% of three kinds at least. Two to the power of a list's weight says in
// which part of the documents, at most, its words are: half of them, a quarter, …
var commonWords = []struct {
	weight uint8
	words  string
}{
	{1, `all also and any are but can for from has have more name new not one only other see set some that the these this use used
		using when which will with you your`},
	{2, `about access add after always api argument arguments available based because been before being between both browser bug call
		called case change check class code com command configuration copyright create created current currently data default
		description details different disabled documentation does each either error even example examples file files first flag
		following format found full function get given help here history how http index information instance instead interface into
		its just last library license like line list long make many may method methods might module most must need next non note now
		number object order out output over package page parameters please previous project provide provides public python read
		report required return returns run same should show since software source specified standard string such support system than
		their them then there they those through time true two type under updated user uses value values version want was way well
		were what where while without work would zero`},
	{3, `able above according account actually added addition additional additionally address again against allow allowed allows alpha
		already another application applications appropriate around array associated attribute attributes automatically avoid back
		base basic behavior below best beta better binary bit boolean bsd bugs build built bytes calling calls cannot cases cause
		certain changed changes character characters classes close commands comments common complete constructor contain containing
		contains content contents context control copy core correct corresponding could creates creating date debian declared
		defaults defined depending deprecated described development did directly directory display doesn doing don done down due
		during early effect email empty enable enabled end environment equivalent errors etc event every except exception existing
		expected extends fails false feature features few field fields final find flags follow form foundation free fully functions
		further future general generated give global gnu good google group had handle handling having header high home however html
		https identifier implement implementation implemented import important include included includes including info input install
		installed int integer interfaces internal isn issues itself java javascript keep key keys know known lang language large
		later latest least left length less level lib link linux lists local location log longer look low made main makes making man
		manual match maximum means memory message mode modules much multiple named names necessary needed needs never news none notes
		notice null numbers objects october off old once open operation operations option optional options org original otherwise our
		own packages pages parameter part particular pass passed path people per place platform point policy positional possible
		prefix present print problem process program property provided quiet range rather real really recent reference related
		release remove removed require requires resource result results returned right running script search second section security
		send separate service services sets setting several share short side similar simple single site size small something space
		special specific specifies specify specifying start starting state static still store strings style summary supported
		supports sure systems table take takes target test text things though thread three times token too tools top topic trace try
		trying types unix unless until update usage useful users usually valid variable variables variants various versions very via
		void wait warning ways whether who wide windows within working works world write writing written www year years yet`},
	{4, `ability absolute abstract accept accepted accepts accessible across action active actual adding addresses adds adjust
		advanced affect algorithm alias allowing almost along alternative although among amount anything appear append applied apply
		approach arbitrary archive area args article ascii asked async attempt attempts author auto away bad bar become becomes begin
		beginning behind big bin bits block blocks body bound break broken buffer building builds byte cache care caused causes
		center central changing char checking checks child choice choose clean clear client clone closed collection color come comes
		comma comment community compare compared compatibility compatible compile compiled compiler completely complex component
		components compute condition conditions config configure configured connect connection consider considered const constant
		constants constructors constructs contained container continue convenience conversion convert converted correctly cost count
		course creation cross custom database day days debug debugging def define defines definition delete dependent depends
		describe descriptor design designed desired desktop despite detail detailed detect determine determined dev developers device
		dictionary didn difference dir direct directories disable discussion distribution docs document documented domain double drop
		dynamic earlier easier easily easy edit editor element elements else embedded enables encoding enough ensure enter entire
		entries entry equal especially events ever everything exact exactly exceptions executable execute executed execution exist
		exists exit expect experience explicit explicitly expression expressions extended extension extensions external extra fact
		fail failed failure family far fast faster feel filename filter finally five fix fixed float followed follows foo force
		formats formatting forward four frame front functionality generally generate generation generic gets getting gives giving
		going got great greater groups guide half hand handled handler handles happen hard hash head headers higher his hold host
		idea ignore ignored image images immediately implementations implementing implements improve increase independent indicate
		indicates individual init initial initialized inside installation installing instances instructions intended interactive
		internet introduced invalid invoked issue item items job join kept kernel keyword kind languages larger latter lead leading
		learn leave len let levels libraries life likely limit limited lines links listed literal little live load locale locations
		lock login looking looks lookup loop lot lower machine macro macros mail maintain major management manager map mapping mark
		marked matches matching max mean meaning mechanism media member members menu messages minimum minor minutes missing model
		modified modify mostly move moved multi namespace native negative nested net network newer nor normal normally nothing notify
		numeric obtained occur occurs offset often older omitted ones online operating operator others outside override overrides
		pair parent parse parser parsing parts party passing password patch paths pattern perform performance performed permission
		places platforms plus pointer points pool port portable position positive posix possibly post power pre prevent previously
		primary printed prior private probably problems processed processing produce programming programs progress projects properly
		properties protected protocol providing published purpose put qualified questions raise raised random raw reading reads ready
		reason reasons receive received recommended record reduce refer references region register registered regular relative
		released releases relevant remaining remote removes removing replace replaced reported reporting reports represent
		representation representing represents request requested requests requirements reserved reset resources respectively response
		rest resulting returning rights risk root rule rules runs runtime safe said save say says scripts seconds secure seen select
		selected self semantics sent separated sequence series server settings setup shared shell shown shows sign signal signature
		significant similarly simply skip slightly smaller socket sometimes soon sort sources spec specification speed split stable
		stack standards started starts statement status stderr step stop storage stored stream struct structure sub subject success
		successful suitable sun supplied supporting switch syntax sys tag taken taking team tell term terms testing tests thanks
		therefore thing think third threads thus timeout today together tool total track treated tree turn txt typically undefined
		underlying understand unicode unique unit unknown unlike updates upon url usr usual utf util utility variant view virtual
		visible waiting warnings watch web whatever whole whose why width window wish won words wrapper wrong xml yes`},
}

// rare is the weight of a word that is in no list: it is in one document of sixty.
const rare = 6
