//! Values drawn from the bytes of an input. Zeros follow the last byte, so that every input is valid.

/// Remaining bytes of an input.
pub struct Draw<'a>(&'a [u8]);

impl<'a> Draw<'a> {
    /// Create a source of all bytes of `data`.
    pub fn new(data: &'a [u8]) -> Draw<'a> {
        Draw(data)
    }

    /// Whether all bytes have been used.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Draw a byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Draw a flag from the low bit of a byte.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Draw a two-byte number.
    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Draw a four-byte number.
    pub fn long(&mut self) -> u32 {
        self.word() as u32 | (self.word() as u32) << 16
    }

    /// Draw an element of a list.
    pub fn one<'b, T>(&mut self, of: &'b [T]) -> &'b T {
        &of[self.byte() as usize % of.len()]
    }

    /// Draw a number of any size: a single byte, about a multiple of `unit`, or 32 bits.
    pub fn number(&mut self, unit: u32) -> u32 {
        match self.byte() % 4 {
            0 => self.byte() as u32,
            1 => (self.byte() as u32).wrapping_mul(unit),
            2 => (self.byte() as u32).wrapping_mul(unit).wrapping_add(self.byte() as i8 as u32),
            _ => self.long(),
        }
    }
}
