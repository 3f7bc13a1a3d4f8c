//! The rules themselves, from the `icu` crates with their compiled data.

use std::cmp::Ordering;

use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::provider::{
    Baked, CollationDiacriticsV1, CollationJamoV1, CollationMetadata, CollationMetadataV1, CollationReorderingV1,
    CollationRootV1, CollationSpecialPrimariesV1, CollationTailoringV1,
};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use icu_normalizer::provider::{NormalizerNfdDataV1, NormalizerNfdTablesV1};
use icu_provider::prelude::*;

use super::options::{CaseFirst, Options};
use crate::error::{Error, Result};

pub(super) enum Icu {
    Compiled(CollatorBorrowed<'static>),
    /// Accents count from the end though the locale does not say so, or the other way round: rules of our own making.
    Turned(Box<Collator>),
}

impl Icu {
    /// `tag`: the locale as the crates name it.
    pub fn new(tag: &str, options: &Options) -> Result<Icu> {
        let broken = |why: &dyn std::fmt::Display| {
            Error::internal(format!("the collation rules of the locale '{}' cannot be had: {why}", options.locale))
        };
        let locale = Locale::try_from_str(tag).map_err(|error| broken(&error))?;
        let mut preferences = CollatorPreferences::from(&locale);
        preferences.case_first = Some(match options.case_first {
            CaseFirst::Upper => CollationCaseFirst::Upper,
            CaseFirst::Lower => CollationCaseFirst::Lower,
            CaseFirst::Off => CollationCaseFirst::False,
        });
        preferences.numeric_ordering = Some(match options.numeric_ordering {
            true => CollationNumericOrdering::True,
            false => CollationNumericOrdering::False,
        });
        let mut chosen = CollatorOptions::default();
        chosen.strength = Some(match options.strength {
            1 => Strength::Primary,
            2 => Strength::Secondary,
            3 => Strength::Tertiary,
            4 => Strength::Quaternary,
            _ => Strength::Identical,
        });
        chosen.case_level = Some(if options.case_level { CaseLevel::On } else { CaseLevel::Off });
        chosen.alternate_handling =
            Some(if options.shifted { AlternateHandling::Shifted } else { AlternateHandling::NonIgnorable });
        chosen.max_variable =
            Some(if options.max_variable_space { MaxVariable::Space } else { MaxVariable::Punctuation });
        if options.backwards == super::locale::habits(&options.locale).backwards {
            return Ok(Icu::Compiled(Collator::try_new(preferences, chosen).map_err(|error| broken(&error))?));
        }
        let turned = Turned { backwards: options.backwards };
        let collator = Collator::try_new_unstable(&turned, preferences, chosen).map_err(|error| broken(&error))?;
        Ok(Icu::Turned(Box::new(collator)))
    }

    #[inline]
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        match self {
            Icu::Compiled(collator) => collator.compare(a, b),
            Icu::Turned(collator) => collator.as_borrowed().compare(a, b),
        }
    }

    pub fn write_key(&self, text: &str, out: &mut Vec<u8>) {
        // A vector takes every byte: the error type has no values.
        let Ok(()) = match self {
            Icu::Compiled(collator) => collator.write_sort_key_to(text, out),
            Icu::Turned(collator) => collator.as_borrowed().write_sort_key_to(text, out),
        };
    }
}

/// The compiled data, but with the direction of accents chosen here: the crates take it from the locale alone.
struct Turned {
    backwards: bool,
}

/// The bit of a locale's metadata that says that accents count from the end.
const BACKWARDS: u32 = 1 << 7;

impl DataProvider<CollationMetadataV1> for Turned {
    fn load(&self, request: DataRequest<'_>) -> std::result::Result<DataResponse<CollationMetadataV1>, DataError> {
        let found: DataResponse<CollationMetadataV1> = Baked.load(request)?;
        let bits = found.payload.get().bits;
        let bits = if self.backwards { bits | BACKWARDS } else { bits & !BACKWARDS };
        Ok(DataResponse { metadata: found.metadata, payload: DataPayload::from_owned(CollationMetadata { bits }) })
    }
}

macro_rules! as_compiled {
    ($($marker:ty => $baked:expr),* $(,)?) => {$(
        impl DataProvider<$marker> for Turned {
            fn load(&self, request: DataRequest<'_>) -> std::result::Result<DataResponse<$marker>, DataError> {
                $baked.load(request)
            }
        }
    )*};
}
as_compiled! {
    CollationRootV1 => Baked,
    CollationTailoringV1 => Baked,
    CollationDiacriticsV1 => Baked,
    CollationJamoV1 => Baked,
    CollationReorderingV1 => Baked,
    CollationSpecialPrimariesV1 => Baked,
    NormalizerNfdDataV1 => icu_normalizer::provider::Baked,
    NormalizerNfdTablesV1 => icu_normalizer::provider::Baked,
}
