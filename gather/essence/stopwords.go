package essence

// stopWords are the words that a language cannot do without, the most frequent
// of each: they tell the language of a text, and nothing of what it is about. They are
// written as keywords are, in small letters.
var stopWords = []struct{ lang, words string }{
	{"en", `the and for that this with you not are from can have will all any may has was but which use used using when one its
		other than then also such only into more there these they been must should does each some what how about out who
		their your our his her him she were would could if of to in is it on as at by an or be we do no so up us he my me see
		new two per via i a had just over very after most where why because while here those them itself however being
		both between under through during before same many much even well said says like`},
	{"de", `der die das und ist nicht ein eine einen einem einer eines den dem des von zu mit sich auf für im in an als auch es so
		wie wird werden wurde wurden sind war hat haben kann können nach bei aus um am zum zur oder aber nur noch wenn dass sie er
		ich wir ihr man bis durch über vor unter keine kein mehr sein seine ihre ihrer diese dieser dieses diesem diesen was wer
		soll sollte muss müssen hier schon dann da doch sehr dort ihm ihn ihnen uns zwischen gegen ohne während also damit alle
		allem allen aller alles andere anderen mich mir dich dir hatte hätte würde wäre gibt immer wieder jetzt heute bereits
		etwa jedoch sowie beim vom ins denn weil ob`},
	{"fr", `le la les un une des de du et est en que qui dans pour pas sur au aux par avec ce ces cette son sa ses il elle ils elles
		on nous vous je se ne plus ou où mais comme si sont être été a ont avait fait faire tout tous toute toutes leur leurs
		même aussi bien sans sous entre après avant peut peuvent doit dont cela ceci celui celle ceux lors chez très encore donc
		alors quand ainsi mon ma mes ton votre vos notre nos était sera y lui moi`},
	{"es", `el la los las un una unos unas de del y e es en que no por para con se su sus lo al como más pero o si sobre este esta
		estos estas ese esa eso entre cuando muy sin ya también hasta desde ha han fue ser son era está están hay porque donde
		quien todo todos toda todas otro otros otra nos le les me mi te tu yo él ella ellos puede pueden debe sido tiene así
		cada durante uno según contra antes después`},
	{"it", `il lo la i gli le un uno una di del dello della dei degli delle e è in nel nella nei nelle che non per con si su sul
		sulla da dal dalla al alla ai alle come più ma o se questo questa questi queste quello quella anche sono essere stato
		ha hanno era può possono deve dove quando ogni tutti tutto tutta suo sua suoi loro ci ne io noi voi lui lei mi ti
		perché così cui molto dopo prima tra fra ancora già solo sempre`},
	{"pt", `o a os as um uma uns umas de do da dos das e é em no na nos nas que não por pelo pela para com se seu sua seus suas ao
		aos à como mais mas ou sobre este esta estes estas esse essa isso isto entre quando muito sem já também até desde foi ser
		são era está estão há porque onde quem todo todos toda todas outro outros eu ele ela eles nós você pode podem deve sido
		tem têm cada durante depois antes lhe meu minha`},
	{"nl", `de het een en van is in op te dat die niet zijn voor met als aan er bij om ook maar dan wordt worden werd door naar uit
		over tot heeft hebben had kan kunnen nog wel of deze dit ze zij hij we wij je u uw ik geen meer alle alleen moet zal zou
		wat waar wie hoe hun haar mijn onder tussen tegen zonder na veel zo toen omdat indien gebruikt`},
	{"sv", `och att det som en ett på är av för med den till i inte om har de var från han hon vi ni du jag kan ska skall men eller
		sig så nu när där här vad vilka vilken detta dessa denna alla andra också under över efter vid mot utan mellan blir blev
		finns måste skulle kommer bara mycket än då hur min din sin mer`},
	{"da", `og at det som en et på er af for med den til i ikke om har de var fra han hun vi jeg du kan skal men eller sig så nu når
		der her hvad hvilke hvilken dette disse denne alle andre også under over efter ved mod uden mellem bliver blev findes må
		skulle kommer kun meget end da hvor min din sin mere ud op`},
	{"nb", `og å det som en et på er av for med den til i ikke om har de var fra han hun vi jeg du kan skal men eller seg så nå når
		der her hva hvilke hvilken dette disse denne alle andre også under over etter ved mot uten mellom blir ble finnes må
		skulle kommer bare mye enn da hvor min din sin mer ut opp`},
	{"fi", `ja on ei se että joka tai kun ovat oli hän mutta kuin niin myös tämä tämän sen sitä jos voi voidaan ole olla mitä mikä
		jotka jonka vain nyt sekä hänen ne niiden tässä siitä kuten joita ennen jälkeen kanssa mukaan minä sinä me te he kaikki
		vielä eivät olisi ollut jo ellei`},
	{"pl", `i w z na do się nie to jest że o jak za od po przez przy dla co ale lub albo oraz są być był była było może można ten ta
		te tego tej tym tych który która które których jego jej ich tylko już jeszcze gdy jeśli tak także także również bez pod
		nad przed między czy ze we ma mają będzie został jako bardzo kiedy gdzie`},
	{"cs", `a je v na se že s z do o to i jako pro nebo za by od po při ale tak jsou být byl byla bylo může lze tento tato toto této
		který která které jeho její jejich pouze již ještě když pokud také bez pod nad před mezi zda ve ze má mají bude není
		k ke jak co aby podle není však jen`},
	{"sk", `a je v na sa že s z do o to i ako pre alebo za by od po pri ale tak sú byť bol bola bolo môže tento táto toto tejto
		ktorý ktorá ktoré jeho jej ich iba už ešte keď ak tiež bez pod nad pred medzi či vo zo má majú bude nie je k ku čo aby
		podľa však len`},
	{"sl", `in je v na se da za so ni z s ki pa ne ali po tudi kot bi od do pri kar če lahko ta to te tega teh še že bil bila bilo
		biti samo med pod nad pred brez ker ko kako vse vsi njegov njen njihov mora`},
	{"hr", `i je u na se da za su nije s sa od do po koji koja koje ili kao što bi ali ako može ovo ova ovaj taj to te tako već još
		bio bila bilo biti samo između pod nad pred bez jer kada kako sve svi njegov njen njihov mora iz će o nakon prema`},
	{"hu", `a az és hogy nem is egy ez van volt meg de csak ha vagy mint már még el ki be fel le azt ezt amely amelyek aki ami
		kell lehet lesz majd után között szerint által ahol mert így pedig sem minden nincs ezek azok más`},
	{"ro", `și de la în a cu pe că nu este un o din pentru care se sau mai ca sunt fi fost dar dacă prin acest această aceste acestea
		lui ei lor după între fără toate tot doar poate trebuie când unde al ale ai au era vor va ce cum`},
	{"tr", `ve bir bu da de için ile olarak çok daha gibi olan ne ya kadar en her veya ise ama değil var yok sonra önce ancak
		tarafından olduğu olduğunu eğer hem ki şu o ben sen biz siz onlar nasıl neden göre mi mı bütün tüm`},
	{"id", `yang dan di dari untuk pada dengan ini itu adalah tidak ke dalam akan oleh atau juga dapat sebagai tersebut ada bisa
		telah lebih saya anda kami mereka jika harus karena seperti hanya semua sudah secara`},
	{"ca", `el la els les un una de del dels i és en que no per amb es al als com més però o si aquest aquesta aquests aquestes
		entre quan molt sense ja també fins des ha han ser són era està hi perquè on tot tots seva seu seus pot poden`},
	{"ru", `и в не на что с по это как а но для из к от или то его за он она они мы вы я так же все быть был была было были может
		если только уже еще когда также без под над до при во со есть будет этот эта эти этого который которая которые нет
		ли бы у о об их ее`},
	{"uk", `і в не на що з по це як а але для із до від або то його за він вона вони ми ви я так же все бути був була було були
		може якщо тільки вже ще коли також без під над при у та є буде цей ця ці цього який яка які немає чи б о їх її`},
	{"sr", `и у на се да за су није са од до по који која које или као што би али ако може ово ова овај тај то те тако већ још
		био била било бити само између под над пред без јер када како све сви његов њен њихов мора из ће о након према`},
	{"el", `και το να του η της με που την για από είναι στο ο οι στην τα τον των δεν σε ένα μια αυτό θα τις στη ή αν όπως ως αλλά
		έχει κάθε όταν μπορεί`},
}

// A tongue is a set of languages, a bit each, as stopWords has them.
type tongue uint32

// tongueOf is the set of one language, none for one that is not known here.
func tongueOf(lang string) tongue {
	for i, l := range stopWords {
		if l.lang == lang {
			return 1 << i
		}
	}
	return 0
}
