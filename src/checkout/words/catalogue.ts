import type en from './en.json';

type English = typeof en;

/** A text for each plural form that the language has (`Intl.PluralRules`); `other` is always there. */
export type PluralForms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** Texts that have one form. */
export type TextKey = { [Key in keyof English]: English[Key] extends string ? Key : never }[keyof English];

/** Texts that a number chooses. */
export type PluralKey = Exclude<keyof English, TextKey>;

/** The words of a language: every key of the English ones, as the tests check. `{name}` is filled in, `**…**` is strong. */
export type Catalogue = Record<TextKey, string> & Record<PluralKey, PluralForms>;
