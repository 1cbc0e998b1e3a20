"""Words without meaning of their own, in several languages: nobody asks for documents that contain them."""

from __future__ import annotations

STOPPED = """
    a about above after again against all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each few for from further had has have having he her here hers
    him his how i if in into is it its itself just me more most my no nor not now of off on once only or other our
    ours out over own same she should so some such than that the their theirs them then there these they this those
    through to too under until up very was we were what when where which while who whom why will with would you your
    yours
"""
STOP_WORDS = frozenset(STOPPED.split())
"""The words in most English texts: they take most of a search's time and distinguish documents least."""

ENGLISH = """
    although another anybody anyone anything besides cannot despite either else ever every everybody everyone everything
    however instead isnt many may maybe might much must neither never nobody none nothing often perhaps quite rather
    really shall since somebody someone something sometimes still though thus together toward towards unless upon us via
    whenever wherever whether whichever whoever whose within without yet
"""
GERMAN = """
    aber alle als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein deine dem den der des dessen
    die dies diese diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines er es etwas euch euer
    für gegen gibt habe haben hast hat hatte hatten hier ich ihm ihn ihnen ihr ihre im in ins ist jede jeden jeder jedes
    kann kein keine keinen können man mehr mein meine mich mir mit muss müssen nach nicht noch nun nur ob oder ohne sehr
    sein seine seit sich sie sind so soll sollen sondern um und uns unser unter vom von vor wann warum was weil welche
    welchen welcher welches wenn wer werde werden wessen wie wieder wird wo wohin wurde wurden zu zum zur zwischen über
"""
FRENCH = """
    ai alors au aucun aussi autre aux avec avoir car ce cela ces cet cette chez comme comment dans de des donc du elle
    elles en encore est et eu eux fait faut il ils je la laquelle le lequel les leur leurs lui ma mais me mes moi mon ne
    nos notre nous on ont ou où par parce pas peu peut plus pour pourquoi quand que quel quelle quelles quels qui quoi
    sa sans se sera ses si son sont sous sur ta te tes toi ton tous tout toute toutes très tu un une vos votre vous
    était être
"""
SPANISH = """
    al algo ante antes aquel aquella como con contra cual cuando cuándo cuánto cómo de del desde donde dónde durante el
    ella ellas ellos en entre era es esa ese eso esta este esto está están fue ha hace hacia han hasta hay la las le les
    lo los me mi mis muy más ni no nos nosotros nuestra nuestro o os otra otro para pero por porque puede que quien qué
    quién se sea ser si sin sobre son su sus también te tiene todo todos tu tus un una uno unos y ya yo él
"""
ITALIAN = """
    ai al alla alle anche che chi ci come con cosa cui da dai dal dalla dei del della delle di dove e ed era gli ha
    hanno ho il in io la le lei li
    lo loro lui ma mi mia mio ne nei nel nella noi non o per perché più quale quando quanto
    quella quello questa questo se si sia sono su sua sul sulla suo ti tra tu un una uno vi è
"""
DUTCH = """
    aan al als bij dan dat de deze die dit door een en er geen haar had heb hebben heeft het hij hoe hun ik in is je kan
    maar me met mij mijn na naar niet nog of om omdat onder ons onze ook op over te tot uit van veel voor waar waarom
    wanneer wat we welke werd wie wij worden wordt ze zich zij zijn zo zonder zou
"""
BY_LANGUAGE = {
    "en": STOP_WORDS.union(ENGLISH.split()),
    **{
        language: frozenset(words.split())
        for language, words in (("de", GERMAN), ("fr", FRENCH), ("es", SPANISH), ("it", ITALIAN), ("nl", DUTCH))
    },
}
FUNCTION_WORDS = frozenset().union(*BY_LANGUAGE.values())
