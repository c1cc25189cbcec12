// Words of English questions that carry no information.

const STOP_WORDS = new Set(
  `a about also am an and any are as at be because been being both but by can could did do does doing done else every for
   from had has have having he her here hers him his how i if in into is it its just me may might much must my no nor not of
   on only or other our ours please shall she should so some such than that the their theirs them then there these they this
   those to too us very was we were what when where which while who whom whose why will with would you your yours dont
   doesnt didnt cant isnt im ive`
    .split(/\s+/)
    .filter((it) => it !== ''),
)

/**
 * The significant terms of a question; all of them when none is ("who is who").
 *
 * @example telling(['how', 'do', 'i', 'rotate', 'a', 'key']) // ['rotate', 'key']
 */
export function telling(terms: readonly string[]): readonly string[] {
  const rest = terms.filter((it) => !STOP_WORDS.has(it))
  return rest.length > 0 ? rest : terms
}
